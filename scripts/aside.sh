# For a script that starts studies side by side: add each to `aside`, and wait for all with `finished`.
aside=() # processes that work side by side
trap 'kill "${aside[@]}" 2> /dev/null || true' EXIT # they would outlive a script that fails or is told to end
trap 'exit 130' INT
trap 'exit 143' TERM

finished() { # waits for them, and fails if one did
    local failed=0
    for one in "${aside[@]}"; do wait "$one" || failed=1; done
    aside=()
    return $failed
}
