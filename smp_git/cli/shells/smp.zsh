#compdef smp git-smp
# Completion of smp in zsh: eval "$(smp completion zsh)", behind compinit
_smp() {
    local line value text
    local -a plain open
    for line in "${(@f)$(smp __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)words[CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*}
        text=${line#*$'\t'}
        [[ $line == *$'\t'* ]] || text=
        value=${value//:/\\:}
        if [[ $value == *(=|:) ]]; then
            open+=("$value${text:+:$text}")
        else
            plain+=("$value${text:+:$text}")
        fi
    done
    (( $#plain + $#open )) || { _files; return }
    (( $#plain )) && _describe -V 'smp' plain
    (( $#open )) && _describe -V 'smp' open -S ''
}
(( $+functions[compdef] )) && compdef _smp smp git-smp
