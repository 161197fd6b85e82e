#compdef toolwire
# zsh completion of toolwire; made by `toolwire completion zsh`.
_toolwire() {
    local line value meaning
    local -a values meanings
    local -i paths=0 folders=0
    for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -z $line ]] && continue
        value="${line%%$'\t'*}"
        meaning="${line#*$'\t'}"
        case $value in
        :files) paths=1 ;;
        :folders) folders=1 ;;
        *)
            values+=("$value")
            [[ $meaning == "$line" ]] && meanings+=("$value") || meanings+=("$value  -- $meaning")
            ;;
        esac
    done
    (( ${#values} )) && compadd -l -d meanings -a values
    (( paths )) && _files
    (( folders )) && _files -/
    (( ${#values} + paths + folders ))
}
if [[ $funcstack[1] == _toolwire ]]; then
    _toolwire "$@"
else
    compdef _toolwire toolwire
fi
