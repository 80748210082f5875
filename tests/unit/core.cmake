# Tests of src/core and recipes that need no server.
zkrecipes_test(
  core_unit_test
  TIER unit
  SOURCES acquire_fault_table_test.cpp acquire_fsm_test.cpp change_fsm_test.cpp commit_fsm_test.cpp downgrade_fsm_test.cpp lock_delay_fsm_test.cpp double_barrier_test.cpp core_agent_test.cpp core_calls_from_a_policy_test.cpp core_leader_election_test.cpp core_misuse_test.cpp core_moved_from_test.cpp core_mutex_test.cpp core_payload_test.cpp core_read_write_lock_test.cpp core_shared_value_test.cpp
          leader_watch_fsm_test.cpp node_watch_fsm_test.cpp group_watch_fsm_test.cpp persistent_node_fsm_test.cpp queue_test.cpp read_op_fault_table_test.cpp semaphore_fault_table_test.cpp semaphore_fsm_test.cpp sequencer_test.cpp
          core_lock_delay_test.cpp core_persistent_node_test.cpp
  LINK zkrecipes_internals)
zkrecipes_test(
  multi_lock_unit_test
  TIER unit
  SOURCES core_multi_lock_test.cpp multi_acquire_fault_table_test.cpp multi_acquire_fsm_test.cpp
  LINK zkrecipes_internals)
# Each fault table is a world of its own, with names that the others have, too.
set_source_files_properties(acquire_fault_table_test.cpp downgrade_fsm_test.cpp read_op_fault_table_test.cpp semaphore_fault_table_test.cpp semaphore_fsm_test.cpp
                            multi_acquire_fault_table_test.cpp multi_acquire_fsm_test.cpp acquire_fsm_test.cpp leader_watch_fsm_test.cpp node_watch_fsm_test.cpp group_watch_fsm_test.cpp persistent_node_fsm_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# Replaces operator new.
zkrecipes_test(
  step_failure_unit_test
  TIER unit
  SOURCES step_failure_test.cpp
  LINK zkrecipes_internals)
