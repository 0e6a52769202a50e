# Completion of smp in fish: smp completion fish > ~/.config/fish/completions/smp.fish
function __smp_complete
    set -l words (commandline -opc)
    set -l found (smp __complete fish $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c smp -f -k -a '(__smp_complete)'
complete -c git-smp -f -k -a '(__smp_complete)'
