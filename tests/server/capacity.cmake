# The program of scripts/capacity, each curve with small numbers.
if(NOT ZKRECIPES_SANITIZE AND NOT ZKRECIPES_MUTATIONS)
  add_subdirectory("${PROJECT_SOURCE_DIR}/bench/capacity" "${PROJECT_BINARY_DIR}/bench/capacity")
  zkrecipes_tier_needs(server lock_capacity)
  foreach(curve locks sessions waiters rate writes)
    add_test(NAME capacity_${curve} COMMAND lock_capacity ${curve} --brief)
    set_tests_properties(capacity_${curve} PROPERTIES LABELS server TIMEOUT 1500)
  endforeach()
endif()
