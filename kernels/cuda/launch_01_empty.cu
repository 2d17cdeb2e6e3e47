// An empty kernel: what a launch costs when nothing is done.
//
// Takes no arguments, touches no memory. Any launch shape.
extern "C" __global__ void launch_01_empty() {
}
