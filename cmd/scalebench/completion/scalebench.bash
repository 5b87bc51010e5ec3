# bash completion for scalebench
#
#     source <(scalebench completion bash)

_scalebench() {
	local line word current="${COMP_WORDS[COMP_CWORD]}" prefix="" i
	local -a words=() list=()
	COMPREPLY=()

	# bash breaks words at "=" and ":"; scalebench is given them whole.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word="${COMP_WORDS[i]}"
		if ((${#words[@]} > 0)) && [[ $word == [=:]* || ${COMP_WORDS[i - 1]} == *[=:] ]] && _scalebench_joined "$i"; then
			words[${#words[@]} - 1]+="$word"
		else
			words+=("$word")
		fi
	done
	((${#words[@]})) || words=("")
	word="${words[${#words[@]} - 1]}"
	# What bash takes for the current word is only the end of ours.
	[[ $current == [=:] ]] && current=""
	prefix="${word%"$current"}"

	while IFS= read -r line; do
		line="${line%%$'\t'*}"
		case "$line" in
		:files | :folders)
			# Empty candidates make bash complete the names of files itself.
			if [[ $line == :folders ]]; then
				compopt -o dirnames 2>/dev/null
				while IFS= read -r word; do _scalebench_hidden "$word" || list+=("$word"); done < <(compgen -d -- "$current")
			else
				while IFS= read -r word; do _scalebench_hidden "$word" || list+=("$word"); done < <(compgen -f -- "$current")
			fi
			compopt -o filenames 2>/dev/null
			;;
		?*)
			[[ $line == *= ]] && compopt -o nospace 2>/dev/null # its value follows
			list+=("${line#"$prefix"}")
			;;
		esac
	done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
	COMPREPLY=("${list[@]}")
}

# _scalebench_hidden says whether $1 is a hidden file, like .git, that nobody has
# begun to type.
_scalebench_hidden() {
	[[ ${1##*/} == .* && ${current##*/} != .* ]]
}

# _scalebench_joined says whether word $1 follows the one before it without a
# blank, by the text of the line.
_scalebench_joined() {
	local text="${COMP_LINE:0:COMP_POINT}"
	[[ $text == *"${COMP_WORDS[$1 - 1]}${COMP_WORDS[$1]}"* ]]
}

complete -F _scalebench scalebench
