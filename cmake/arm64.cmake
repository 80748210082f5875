# Compiles for arm64 on a Debian machine of another kind. Packages: g++-aarch64-linux-gnu; the libraries as NAME:arm64;
# qemu-user, to run what was compiled.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
