# fish completion for scalebench
#
#     scalebench completion fish > ~/.config/fish/completions/scalebench.fish

function __scalebench_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    # --name=VALUE: fish completes the whole word, paths only behind the sign.
    set -l prefix (string match -r -- '^--[^=]*=' $current)
    set -l path (string replace -r -- '^--[^=]*=' '' $current)
    for line in (command $program __complete $words "$current" 2>/dev/null)
        switch $line
            case ':files'
                for name in (__fish_complete_path $path)
                    echo -- "$prefix$name"
                end
            case ':folders'
                for name in (__fish_complete_directories $path '')
                    echo -- "$prefix$name"
                end
            case '*'
                echo -- $line
        end
    end
end

complete -c scalebench -f -a '(__scalebench_complete)'
