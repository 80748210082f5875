# How every target of the project is compiled.
add_library(zkrecipes_build_flags INTERFACE)
target_compile_features(zkrecipes_build_flags INTERFACE cxx_std_20)
target_compile_options(zkrecipes_build_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
# Before version 13 g++ sees an overlap in "x" + std::string(...) that is not there, once it optimises.
target_compile_options(
  zkrecipes_build_flags
  INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>,$<CONFIG:Release>>:-Wno-restrict>)
# g++, to 14 at least, sees uninitialized strings in empty std::optional, once it optimises.
target_compile_options(zkrecipes_build_flags
                       INTERFACE $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-maybe-uninitialized>)
# A program that links the static library with --gc-sections loads only what it uses: zklock becomes smaller by a third.
target_compile_options(zkrecipes_build_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-ffunction-sections$<SEMICOLON>-fdata-sections>)
if(ZKRECIPES_WERROR)
  target_compile_options(zkrecipes_build_flags INTERFACE -Werror)
endif()
if(ZKRECIPES_MUTATIONS)
  target_compile_definitions(zkrecipes_build_flags INTERFACE ZKRECIPES_MUTATIONS)
endif()
if(ZKRECIPES_SANITIZE)
  # Without no-recover an undefined behaviour prints a line and the test passes.
  target_compile_options(zkrecipes_build_flags INTERFACE -fsanitize=${ZKRECIPES_SANITIZE} -fno-sanitize-recover=all
                                                         -fno-omit-frame-pointer)
  target_link_options(zkrecipes_build_flags INTERFACE -fsanitize=${ZKRECIPES_SANITIZE})
  if(ZKRECIPES_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(zkrecipes_build_flags INTERFACE -Wno-tsan)  # fences inside Boost, see tests/support/tsan.supp
  endif()
endif()
if(ZKRECIPES_SANITIZE MATCHES "address|thread")
  # Part of every program; not instrumented itself, since it runs between two stacks.
  add_library(zkrecipes_sanitizer_stacks OBJECT "${PROJECT_SOURCE_DIR}/tests/support/sanitizer_stacks.cpp")
  target_compile_features(zkrecipes_sanitizer_stacks PRIVATE cxx_std_20)
  foreach(sanitizer address thread)
    if(ZKRECIPES_SANITIZE MATCHES ${sanitizer})
      string(TOUPPER ZKRECIPES_${sanitizer}_SANITIZER definition)
      target_compile_definitions(zkrecipes_sanitizer_stacks PRIVATE ${definition})
    endif()
  endforeach()
  if(ZKRECIPES_SANITIZE MATCHES "thread")
    target_sources(zkrecipes_sanitizer_stacks PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/sanitizer_exceptions.cpp")
  endif()
  target_link_libraries(zkrecipes_sanitizer_stacks PRIVATE Boost::context)
  target_link_libraries(
    zkrecipes_build_flags
    INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:zkrecipes_sanitizer_stacks>>)
endif()

# What a test's environment must hold for the sanitizers: suppressions for code that is not ours, and no silent recovery.
set(ZKRECIPES_TEST_ENVIRONMENT "")
if(ZKRECIPES_SANITIZE)
  set(_supp "${PROJECT_SOURCE_DIR}/tests/support")
  set(ZKRECIPES_TEST_ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${_supp}/tsan.supp halt_on_error=1 second_deadlock_stack=1"
      "LSAN_OPTIONS=suppressions=${_supp}/lsan.supp print_suppressions=0" "UBSAN_OPTIONS=print_stacktrace=1"
      "ZKRECIPES_TEST_SLOWDOWN=4")
endif()

# tests_unit, tests_server …: everything that the tests of one tier run. A test that is not made by zkrecipes_test names
# the programs that it runs by zkrecipes_tier_needs(TIER target …).
foreach(tier unit sim server chaos package interop)
  add_custom_target(tests_${tier})
endforeach()
function(zkrecipes_tier_needs tier)
  add_dependencies(tests_${tier} ${ARGN})
endfunction()

# One layer of the library: sources of this folder, compiled once for the static library, the shared one and the tests.
function(zkrecipes_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(zkrecipes_${name} OBJECT ${ARG_SOURCES})
  set_target_properties(zkrecipes_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                                     VISIBILITY_INLINES_HIDDEN ON)
  if(NOT ZKRECIPES_UNITY_LIBRARY)
    # Also where tests and tools are compiled several files at a time, each file of the library stands alone: that is how users
    # compile it, and tests/package finds the objects in ccache.
    set_target_properties(zkrecipes_${name} PROPERTIES UNITY_BUILD OFF)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ takes the unnamed namespace of a file that it compiles together with others for that of a header.
    target_compile_options(zkrecipes_${name} PRIVATE -Wno-subobject-linkage)
  endif()
  target_include_directories(zkrecipes_${name} PUBLIC "${PROJECT_SOURCE_DIR}/include" "${ZKRECIPES_SOURCES}/src")
  target_link_libraries(zkrecipes_${name} PUBLIC zkrecipes_build_flags spdlog::spdlog Boost::fiber Boost::context
                                                 Threads::Threads ${ARG_DEPENDS})
endfunction()

# A test program. TIER is its ctest label: unit (no server), sim (simulation), server (real servers), chaos (faults), package,
# interop. ENVIRONMENT: NAME=value …
function(zkrecipes_test name)
  cmake_parse_arguments(ARG "" "TIER;TIMEOUT" "SOURCES;LINK;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 1200) # bounds a hang; a busy machine may be ten times as slow
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${ZKRECIPES_SOURCES}/src"
                                             "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE zkrecipes_build_flags ${ARG_LINK} GTest::gmock GTest::gtest_main)
  if(ZKRECIPES_MUTATIONS)
    target_compile_options(${name} PRIVATE -O0)  # only the library and the simulation must be fast there
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:zkrecipes_mutations_listener>)
  endif()
  zkrecipes_tier_needs(${ARG_TIER} ${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_TIER}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT
                                                                  "${ZKRECIPES_TEST_ENVIRONMENT};${ARG_ENVIRONMENT}")
endfunction()
