zkrecipes_test(
  leader_election_server_test
  TIER server
  SOURCES election_crowd.cpp election_crowd_test.cpp leader_election_contract_test.cpp leader_election_counts_test.cpp leader_election_faults_test.cpp leader_election_observe_test.cpp
          leader_election_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)

# The crowd of election_crowd_test.cpp, on an ensemble, for as many rounds as one likes.
add_executable(election_crowd election_crowd.cpp election_crowd_main.cpp)
target_include_directories(election_crowd PRIVATE "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(election_crowd PRIVATE zkrecipes_build_flags zkrecipes_internals zkrecipes::testenv)
