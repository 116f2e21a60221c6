#!/bin/sh
# Everything that a GPU of NVIDIA's is tested with: the conformance suite of the layers and the parity of networks on it, then both
# under compute-sanitizer (memcheck, initcheck, racecheck). Where there is none it fails. `test-gpu.sh BINARY...` takes test binaries
# that were built elsewhere (cargo test --release -p leakscope-net --no-run).
set -eu
export LEAKSCOPE_REQUIRE_GPU=1

if [ $# -eq 0 ]; then
    # its own list of what it has built
    set -- $(cargo test --release -p leakscope-net --lib --test gpu --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
fi

# what loses its GPU on purpose does so in a process of its own, and is no finding
lost="--skip a_gpu_that_fails --skip too_much_for_a_gpu"
for binary; do
    "$binary" gpu device:: conformance captured tf32 pieces processor --test-threads 1
done

# every kernel of a layer, in both precisions, at sizes that the tools end with. A test a process, one stream in each, eight at a time:
# the tools make a launch a thousand times slower, most of it on the processor.
sanitized() {
    tool=$1
    shift
    for binary; do
        # shellcheck disable=SC2086
        "$binary" $FILTER $lost --list | sed -n 's/: test$//p' |
            xargs -r -P "${LEAKSCOPE_SANITIZERS:-8}" -I TEST sh -c '
                log=$(mktemp)
                if compute-sanitizer --tool "$0" --error-exitcode 9 --target-processes application-only \
                    "$1" --exact TEST --test-threads 1 >"$log" 2>&1
                then echo "$0 TEST: clean"; rm "$log"
                elif grep -q "terminated before first instrumented API call" "$log" && grep -q "^test result: ok" "$log"
                then echo "$0 TEST: stays on the processor"; rm "$log"
                else echo "$0 TEST: FAILED"; cat "$log"; rm "$log"; exit 255; fi' "$tool" "$binary"
    done
}
FILTER="conformance device:: convolutions_of_all noise_drawn" sanitized memcheck "$@"
FILTER="conformance device::" sanitized initcheck "$@"
FILTER="conformance device::" sanitized racecheck "$@"
