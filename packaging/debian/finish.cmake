# cpack runs this when the files of each package are in place, before it packs them: what Debian expects of a package
# beyond what `cmake --install` installs.
cmake_minimum_required(VERSION 3.25)
set(sources "${CMAKE_CURRENT_LIST_DIR}/../..")

function(compress file)
  execute_process(COMMAND gzip -9 --no-name --force "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The same sources make the same packages: times are those of the last commit, or of SOURCE_DATE_EPOCH.
string(TIMESTAMP date "%Y-%m-%d" UTC)
execute_process(COMMAND date --utc --rfc-email --date "@$ENV{SOURCE_DATE_EPOCH}" OUTPUT_VARIABLE date
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)

foreach(group library development test_support tool)
  string(TOUPPER ${group} upper)
  set(name "${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${group}/usr")
  if(NOT IS_DIRECTORY "${root}")
    message(FATAL_ERROR "${root}: the files of the package ${name} are not there")
  endif()

  set(documents "${root}/share/doc/${name}")
  file(MAKE_DIRECTORY "${documents}")
  file(COPY "${sources}/packaging/debian/copyright" DESTINATION "${documents}")
  file(COPY_FILE "${sources}/CHANGELOG.md" "${documents}/changelog")
  file(WRITE "${documents}/changelog.Debian"
       "zkrecipes (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
       "  * The changes are in changelog.gz.\n\n" " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress("${documents}/changelog")
  compress("${documents}/changelog.Debian")

  file(GLOB manuals "${root}/share/man/man*/*.[1-9]")
  foreach(manual IN LISTS manuals)
    compress("${manual}")
  endforeach()

  # The directory in which Debian's zsh looks.
  if(IS_DIRECTORY "${root}/share/zsh/site-functions")
    file(RENAME "${root}/share/zsh/site-functions" "${root}/share/zsh/vendor-completions")
  endif()

  file(GLOB_RECURSE archives "${root}/lib/*.a")
  foreach(archive IN LISTS archives)
    execute_process(COMMAND "${CPACK_ZKRECIPES_STRIP}" --strip-debug --remove-section=.comment --enable-deterministic-archives "${archive}"
                            COMMAND_ERROR_IS_FATAL ANY)
  endforeach()

  execute_process(COMMAND find "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${group}" -type d -exec chmod 0755 {} +
                          COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND find "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${group}" -type f ! -path */bin/* -exec chmod 0644 {} +
                          COMMAND_ERROR_IS_FATAL ANY)
endforeach()
