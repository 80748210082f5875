import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class ZkrecipesTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):  # no server is needed: the program says that none answered, and exits with 3
            self.run(f"{os.path.join(self.cpp.build.bindir, 'consumer')} 127.0.0.1:1 100; test $? = 3", env="conanrun")
