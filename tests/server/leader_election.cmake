zkrecipes_test(
  leader_election_server_test
  TIER server
  SOURCES leader_election_contract_test.cpp leader_election_counts_test.cpp leader_election_faults_test.cpp leader_election_observe_test.cpp
          leader_election_test.cpp
  LINK zkrecipes_test_support zkrecipes_internals)
