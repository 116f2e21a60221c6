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

# every kernel of a layer, in both precisions, at sizes that the tools end with; --test-threads 1: one stream
sanitized() {
    tool=$1
    shift
    for binary; do
        # a programme that never calls the driver is an error to the tool
        # shellcheck disable=SC2086
        "$binary" $FILTER $lost --list | grep -q ': test$' || continue
        # shellcheck disable=SC2086
        compute-sanitizer --tool "$tool" --error-exitcode 9 --target-processes application-only \
            "$binary" $FILTER $lost --test-threads 1
    done
}
FILTER="conformance device:: convolutions_of_all noise_drawn" sanitized memcheck "$@"
FILTER="conformance device::" sanitized initcheck "$@"
FILTER="conformance device::" sanitized racecheck "$@"
