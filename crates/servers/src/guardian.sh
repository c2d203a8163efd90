# $1: the directory, $2: the signal that ends the server, and then the server's command line.
# A line on standard input starts the server, again if need be. When the other end is closed, all goes.
dir=$1 last=$2 pid=
shift 2
cd "$dir" || exit 1
# If the server is stopped when our starter dies, the system hangs up on both. A server must not inherit that this is
# ignored, so it is not, until nothing is started any more.
trap : HUP INT TERM

while read -r _; do
    # A server that was killed has to be buried first: PostgreSQL takes a dead one for one that runs.
    [ -z "$pid" ] || wait "$pid"
    exec "$@" >>"$dir/log" 2>&1 </dev/null &
    pid=$!
    echo "$pid"
done
trap '' HUP INT TERM

is_alive() {
    case "$(cut -d ' ' -f 3 "/proc/$pid/stat")" in '' | Z) false ;; esac
}

if [ -n "$pid" ] && is_alive; then
    family="$pid $(grep -l "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status | cut -d / -f 3)"
    # shellcheck disable=SC2086 # several of them
    kill -CONT $family
    kill "-$last" "$pid"
    tries=0
    while is_alive && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    # shellcheck disable=SC2086 # several of them
    ! is_alive || kill -KILL $family
fi
[ -z "$pid" ] || wait "$pid"
# A PostgreSQL that was killed leaves a piece of shared memory behind, and only a few thousand of them fit into a system.
shared=$(sed -n 7p "$dir/base/postmaster.pid" | { read -r _ id; echo "$id"; })
[ -z "$shared" ] || ipcrm -m "$shared"
cd /
rm -rf "$dir"
