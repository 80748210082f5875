#include "java.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/error.hpp>

namespace zkrecipes::testenv::internal {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        if (!part.empty()) {
            parts.push_back(part);
        }
    }
    return parts;
}

bool executable(const std::string& path) { return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0; }

std::string find_program() {
    if (const std::string chosen = variable("ZK_JAVA"); !chosen.empty()) {
        if (!executable(chosen)) {
            throw MissingDependency("ZK_JAVA is " + chosen + ", which is not an executable file");
        }
        return chosen;
    }
    std::vector<std::string> candidates;
    if (const std::string home = variable("JAVA_HOME"); !home.empty()) {
        candidates.push_back(home + "/bin/java");
    }
    for (const auto& folder : split(variable("PATH"), ':')) {
        candidates.push_back(folder + "/java");
    }
    const auto found = std::find_if(candidates.begin(), candidates.end(), executable);
    if (found == candidates.end()) {
        throw MissingDependency(
            "no java in PATH: install it (on Debian: apt-get install default-jre-headless) or set ZK_JAVA or "
            "JAVA_HOME");
    }
    return *found;
}

// "directory/*" means all its jars, as for java itself, but in a fixed order: the class-data archive depends on it.
std::vector<std::string> expand(const std::string& entry) {
    if (entry.size() < 2 || entry.compare(entry.size() - 2, 2, "/*") != 0) {
        return {entry};
    }
    std::vector<std::string> jars;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(entry.substr(0, entry.size() - 2), error)) {
        if (file.path().extension() == ".jar") {
            jars.push_back(file.path());
        }
    }
    std::sort(jars.begin(), jars.end());
    return jars;
}

std::vector<std::string> find_jars() {
    if (const std::string chosen = variable("ZK_CLASSPATH"); !chosen.empty()) {
        std::vector<std::string> jars;
        for (const auto& entry : split(chosen, ':')) {
            for (auto& jar : expand(entry)) {
                if (!fs::exists(jar)) {
                    throw MissingDependency("ZK_CLASSPATH names " + jar + ", which does not exist");
                }
                jars.push_back(std::move(jar));
            }
        }
        return jars;
    }
    if (const std::string home = variable("ZOOKEEPER_HOME"); !home.empty()) {
        auto jars = expand(home + "/lib/*");
        const auto more = expand(home + "/*");
        jars.insert(jars.end(), more.begin(), more.end());
        if (jars.empty()) {
            throw MissingDependency("ZOOKEEPER_HOME is " + home + ", but there are no jars in it or in its lib folder");
        }
        return jars;
    }
    // The class path in Debian's zookeeper.jar names all it needs except a logger.
    const std::string folder = "/usr/share/java/";
    if (!fs::exists(folder + "zookeeper.jar")) {
        throw MissingDependency(
            "no " + folder +
            "zookeeper.jar: install ZooKeeper (on Debian: apt-get install libzookeeper-java) or set "
            "ZOOKEEPER_HOME or ZK_CLASSPATH");
    }
    std::vector<std::string> jars{folder + "zookeeper.jar"};
    if (fs::exists(folder + "slf4j-simple.jar")) {
        jars.push_back(folder + "slf4j-simple.jar");
    }
    return jars;
}

}  // namespace

Java find_java() {
    Java java;
    java.program = find_program();
    java.jars = find_jars();
    for (const auto& jar : java.jars) {
        java.class_path += (java.class_path.empty() ? "" : ":") + jar;
    }
    return java;
}

std::vector<std::string> quick_start_flags() {
    return {"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:CICompilerCount=1", "-XX:-UsePerfData", "-Xmx96m",
            "-Xss512k", "-Djava.net.preferIPv4Stack=true", "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64",
            // The log has times, but no lines or stack traces for each client connection and request.
            "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
            "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=error"};
}

}  // namespace zkrecipes::testenv::internal

namespace zkrecipes::testenv {

std::string why_unavailable() {
    try {
        (void)internal::find_java();
        return "";
    } catch (const MissingDependency& missing) {
        return missing.what();
    }
}

}  // namespace zkrecipes::testenv
