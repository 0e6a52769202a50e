# Completion of smp and git smp in bash: eval "$(smp completion bash)"
_smp() {
    local value text
    COMPREPLY=()
    while IFS=$'\t' read -r value text; do
        COMPREPLY+=("$(printf '%q' "$value")")
    done < <(smp __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o default -o nosort -F _smp smp git-smp 2>/dev/null || complete -o default -F _smp smp git-smp
# Git's own completion asks for this one.
_git_smp() { _smp; }
