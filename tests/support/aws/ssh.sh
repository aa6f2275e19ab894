#!/bin/bash
# Stands for ssh, and for the nodes: answers as nodes would, from a directory that $NODES names.
#   deaf/ADDRESS    that node does not answer        fails/WORD   commands with that word fail
#   kill            WORD SIGNAL: the caller gets that signal at a command with that word
#   screens/N.json  what the N-th screening says     done         what was asked: address, word
set -eu
command=${!#}
at=$(($# - 1))
address=${!at#*@}
case $command in
    true) word=answer ;;
    *tonnage-disks*) word=disks ;;
    *"cat > ~/tonnage-wheels/"*) word=wheel ;;
    *"pip install"*) word=install ;;
    *auth_token*) word=token ;;
    *"ray start"*) word=start ;;
    *"python -c"*) word=alive ;;
    *"measure screen"*) word=screen ;;
    *) word=command ;;
esac
cat > /dev/null
{
    flock 9
    echo "$address $word" >> "$NODES/done"
    printf '%s\n' "$command" >> "$NODES/said"
    if [ -e "$NODES/kill" ] && read -r when signal < "$NODES/kill" && [ "$when" = "$word" ]; then
        rm "$NODES/kill"
        kill "-$signal" $PPID
        sleep 1
    fi
    if [ -e "$NODES/deaf/$address" ]; then
        echo "ssh: connect to host $address port 22: Connection refused" >&2
        exit 255
    fi
    if [ -e "$NODES/fails/$word" ]; then
        echo "$word failed as the test says" >&2
        exit 1
    fi
    case $word in
        start)
            name=$(sed -n 's/^name=//p' <<< "$command")
            # A new head begins anew.
            grep -q "^head=''" <<< "$command" && : > "$NODES/alive"
            echo "$name" >> "$NODES/alive"
            ;;
        alive) tr '\n' ' ' < "$NODES/alive" ;;
        screen)
            number=$(grep -c ' screen$' "$NODES/done")
            cat "$NODES/screens/$number.json" 2> /dev/null || echo '{"suspects": []}'
            ;;
        command)
            echo "said on $address"
            ;;
    esac
} 9> "$NODES/lock"
