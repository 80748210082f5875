"""The Conan recipe (Conan 2): conan create packaging/conan --build=missing"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"
TOP = os.path.join("..", "..")


class ZkrecipesConan(ConanFile):
    name = "zkrecipes"
    description = "Distributed locks, semaphores and leader elections on Apache ZooKeeper for C++20"
    license = "Apache-2.0"
    topics = ("zookeeper", "lock", "mutex", "leader-election", "distributed")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "prometheus": [True, False],
        "testing": [True, False],
        "tools": [True, False],
    }
    default_options = {"shared": False, "fPIC": True, "prometheus": False, "testing": True, "tools": False}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, TOP, "CMakeLists.txt"))
        self.version = re.search(r"^  VERSION ([0-9.]+)$", text, re.MULTILINE).group(1)

    def export_sources(self):
        top = os.path.join(self.recipe_folder, TOP)
        for directory in ("cmake", "completion", "include", "man", "monitoring", "packaging", "recipes", "src", "testenv"):
            copy(self, f"{directory}/*", top, self.export_sources_folder)
        for file in ("CMakeLists.txt", "CHANGELOG.md", "LICENSE"):
            copy(self, file, top, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("zkrecipes is for Linux")
        check_min_cppstd(self, 20)

    def requirements(self):
        # The library's headers include none of these but Boost, and that only for zkrecipes/asio.hpp.
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        self.requires("spdlog/[>=1.10 <2]")
        self.requires("zookeeper-client-c/[>=3.8 <4]")
        if self.options.prometheus:
            self.requires("prometheus-cpp/[>=1.0 <2]", transitive_headers=True)
        if self.options.tools:
            self.requires("cli11/[>=2.1 <3]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ZKRECIPES_INSTALL"] = True
        toolchain.cache_variables["ZKRECIPES_BUILD_TESTS"] = False
        toolchain.cache_variables["ZKRECIPES_BUILD_TESTENV"] = False
        toolchain.cache_variables["ZKRECIPES_BUILD_EXAMPLES"] = False
        toolchain.cache_variables["ZKRECIPES_BUILD_PROMETHEUS"] = bool(self.options.prometheus)
        toolchain.cache_variables["ZKRECIPES_BUILD_TESTING"] = bool(self.options.testing)
        toolchain.cache_variables["ZKRECIPES_BUILD_TOOLS"] = bool(self.options.tools)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))  # CMakeDeps makes the users' files
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "zkrecipes")
        library = self.cpp_info.components["zkrecipes"]
        library.libs = ["zkrecipes"]
        library.set_property("cmake_target_name", "zkrecipes::zkrecipes")
        library.set_property("pkg_config_name", "zkrecipes")
        library.requires = ["boost::fiber", "boost::context", "boost::headers", "spdlog::spdlog",
                            "zookeeper-client-c::zookeeper-client-c"]
        library.system_libs = ["pthread", "dl"]
        if self.options.testing:
            testing = self.cpp_info.components["testing"]
            testing.libs = ["zkrecipes_testing"]
            testing.set_property("cmake_target_name", "zkrecipes::testing")
            testing.requires = ["zkrecipes"]
        if self.options.prometheus:
            prometheus = self.cpp_info.components["prometheus"]
            prometheus.libs = ["zkrecipes_prometheus"]
            prometheus.set_property("cmake_target_name", "zkrecipes::prometheus")
            prometheus.requires = ["zkrecipes", "prometheus-cpp::prometheus-cpp-core"]
