#pragma once

#include <string>
#include <vector>

namespace zkrecipes::testenv::internal {

/// The Java program and the ZooKeeper jars.
struct Java {
    std::string program;
    std::string class_path;
    std::vector<std::string> jars;  // the class path, taken apart
};

/// Looks at $ZK_JAVA, $JAVA_HOME and $PATH; $ZK_CLASSPATH, $ZOOKEEPER_HOME and Debian's /usr/share/java. Throws
/// MissingDependency.
[[nodiscard]] Java find_java();

/// JVM flags for a small server that starts quickly and lives shortly.
[[nodiscard]] std::vector<std::string> quick_start_flags();

/// The class-data archive for this Java and these jars: about half of the start-up time. Made at the first call on a
/// machine (some two seconds), under a lock in the user's cache directory. Empty when there is none, which costs
/// nothing but the time.
[[nodiscard]] std::string class_data_archive(const Java& java);

}  // namespace zkrecipes::testenv::internal
