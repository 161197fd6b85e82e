# bash completion of toolwire; made by `toolwire completion bash`.
_toolwire() {
    local IFS=$'\n' line="${COMP_LINE:0:COMP_POINT}" current prefix answer value
    local -a words
    # Split at blanks only: bash itself also splits at ":" and "=", which model names contain.
    IFS=$' \t\n' read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]} - 1]}"
    prefix="${current%"${current##*[:=]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r value answer; do
        case $value in
        :files) compopt -o default 2>/dev/null ;;
        :folders) compopt -o dirnames 2>/dev/null ;;
        *) COMPREPLY+=("${value#"$prefix"}") ;;
        esac
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _toolwire toolwire
