zkrecipes_test(session_server_test TIER server SOURCES refusing_servers_test.cpp server_tick_test.cpp session_test.cpp LINK zkrecipes_test_support
               zkrecipes_internals)
# Replaces getaddrinfo, as the next one does.
zkrecipes_test(session_addresses_server_test TIER server SOURCES session_addresses_test.cpp LINK zkrecipes_test_support
               zkrecipes_internals)
zkrecipes_test(address_families_server_test TIER server SOURCES address_families_test.cpp LINK zkrecipes_test_support
               zkrecipes_internals)
zkrecipes_test(session_stats_server_test TIER server SOURCES session_stats_test.cpp LINK zkrecipes_test_support
               zkrecipes_internals)
zkrecipes_test(session_crowd_server_test TIER server SOURCES session_crowd_test.cpp LINK zkrecipes_test_support
               zkrecipes_internals)

# A program of its own, because it is about how processes end.
zkrecipes_test(process_end_server_test TIER server TIMEOUT 900 SOURCES process_end_test.cpp LINK zkrecipes_test_support)
add_executable(process_end_child process_end_child.cpp process_end_fork.cpp)
target_include_directories(process_end_child PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(process_end_child PRIVATE zkrecipes_build_flags zkrecipes::zkrecipes)
set_target_properties(process_end_child PROPERTIES UNITY_BUILD OFF)
target_compile_definitions(process_end_server_test
                           PRIVATE "ZKRECIPES_PROCESS_END_CHILD=\"$<TARGET_FILE:process_end_child>\"")
add_dependencies(process_end_server_test process_end_child)
zkrecipes_test(double_contract_server_test TIER server SOURCES double_contract_test.cpp LINK zkrecipes::zkrecipes
               zkrecipes::testenv)
