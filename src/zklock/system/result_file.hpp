#pragma once

#include <string>
#include <string_view>

namespace zkrecipes::zklock {

/// Replaces the contents of `file`. A regular or missing file is replaced in one step if its directory allows that.
/// A device, a pipe or the target of a link is written to in place. Returns false if that fails; errno says why.
bool write_result(const std::string& file, std::string_view text);
/// Removes or empties `file`, so that an earlier run's result is not mistaken for this run's.
void forget_result(const std::string& file) noexcept;
/// Whether write_result can succeed. Leaves no trace: a reader of a pipe must not see it end. If not, errno says why.
bool can_write_result(const std::string& file);

}  // namespace zkrecipes::zklock
