#compdef scalebench
# zsh completion for scalebench
#
#     scalebench completion zsh > "${fpath[1]}/_scalebench"

_scalebench() {
	local line word about
	local -a candidates unfinished
	local files=0 folders=0

	while IFS= read -r line; do
		case "$line" in
		:files) files=1 ;;
		:folders) folders=1 ;;
		?*)
			word="${line%%$'\t'*}"
			about=""
			[[ "$line" == *$'\t'* ]] && about="${line#*$'\t'}"
			# KEY= goes on with a value: no blank behind it.
			if [[ "$word" == *= ]]; then
				unfinished+=("${word//:/\\:}${about:+:$about}")
			else
				candidates+=("${word//:/\\:}${about:+:$about}")
			fi
			;;
		esac
	done < <("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)

	((${#candidates})) && _describe -t candidates scalebench candidates
	((${#unfinished})) && _describe -t candidates scalebench unfinished -S ''
	if ((files || folders)); then
		# --name=VALUE: only what follows the sign is a path.
		[[ "$PREFIX" == --*=* ]] && compset -P '*='
		if ((folders)); then _files -/; else _files; fi
	fi
}

# Loaded by name from $fpath, or sourced.
if [[ "${funcstack[1]}" == _scalebench ]]; then
	_scalebench "$@"
else
	compdef _scalebench scalebench
fi
