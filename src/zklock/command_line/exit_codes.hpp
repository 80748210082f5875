#pragma once

#include <zkrecipes/error.hpp>

namespace zkrecipes::zklock {

/// The exit codes of zklock itself. They follow sysexits.h, timeout(1) and sh where these define one.
enum ExitCode : int {
    kOk = 0,
    kDeclined = 1,       ///< break: the user answered no
    kUsage = 64,         ///< EX_USAGE
    kBadData = 65,       ///< EX_DATAERR: unusable data in the lock directory
    kUnavailable = 69,   ///< EX_UNAVAILABLE: no ZooKeeper
    kInternal = 70,      ///< EX_SOFTWARE
    kOsError = 71,       ///< EX_OSERR: fork, pipe
    kCannotCreate = 73,  ///< EX_CANTCREAT: the path of the lock cannot be created
    kIoError = 74,       ///< EX_IOERR: standard output, --events or --result cannot be written
    kBusy = 75,          ///< EX_TEMPFAIL: the lock is held
    kNoPermission = 77,  ///< EX_NOPERM
    kConfig = 78,        ///< EX_CONFIG
    kLost = 79,          ///< the lock was lost while the command ran
    kRunUnknown = 80,    ///< --once-per: nobody knows how the run of this period ended
    kMaxRun = 124,       ///< as timeout(1)
    kNotExecutable = 126,
    kNotFound = 127,
    kSignalBase = 128
};

ExitCode exit_code_for(Errc code) noexcept;

}  // namespace zkrecipes::zklock
