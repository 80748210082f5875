#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/value/value_update_fsm.hpp"

namespace zkrecipes::internal {

/// A number in a node: so many bytes, big-endian, two's complement. No node, and one without data, is the number 0.
struct NumberFormat {
    int bytes = 8;  // 8 or 4

    bool fits(std::int64_t number) const noexcept {
        return bytes == 8 || (number >= std::numeric_limits<std::int32_t>::min() &&
                              number <= std::numeric_limits<std::int32_t>::max());
    }
    std::string write(std::int64_t number) const;
    /// Empty: something else stands there.
    std::optional<std::int64_t> read(const std::string& data) const;
    /// What to say then.
    std::string problem(const std::string& data) const;
};

/// Makes of a number what depends on what it was.
class NumberChange final : public ValueUpdateRule {
public:
    enum class Kind { add, subtract, exchange, compare };
    /// `operand`: what is added or subtracted, or what it becomes. `expected`: compare: what it must be.
    NumberChange(Kind kind, NumberFormat format, std::int64_t operand, std::int64_t expected = 0)
        : kind_(kind), format_(format), operand_(operand), expected_(expected) {}

    Step begin() override { return {}; }
    Step on_found(const std::optional<FoundValue>& found) override;
    Step on_refused(Errc) override { return {}; }
    void on_written(const ValueWrite&, std::optional<std::int32_t>) override {}

    // When it has ended:
    std::int64_t before() const noexcept { return before_; }
    std::int64_t after() const noexcept { return after_; }

private:
    bool compute();

    const Kind kind_;
    const NumberFormat format_;
    const std::int64_t operand_;
    const std::int64_t expected_;
    std::int64_t before_ = 0;
    std::int64_t after_ = 0;
};

/// Writes whatever stands there, also where nothing does.
class Overwrite final : public ValueUpdateRule {
public:
    explicit Overwrite(std::string data) : data_(std::move(data)) {}

    Step begin() override { return write(ValueWrite::How::set_any); }
    Step on_found(const std::optional<FoundValue>&) override { return begin(); }
    Step on_refused(Errc why) override {
        return write(why == Errc::no_node ? ValueWrite::How::create : ValueWrite::How::set_any);
    }
    void on_written(const ValueWrite&, std::optional<std::int32_t> version) override { version_ = version; }

    const std::string& data() const noexcept { return data_; }
    std::optional<std::int32_t> version() const noexcept { return version_; }

private:
    Step write(ValueWrite::How how) const { return {Then::write, {how, data_}, {}, {}}; }

    const std::string data_;
    std::optional<std::int32_t> version_;
};

/// What is there; where there is nothing, it is made.
class FindOrCreate final : public ValueUpdateRule {
public:
    explicit FindOrCreate(std::string seed) : seed_(std::move(seed)) {}

    Step begin() override { return {}; }
    bool looks_fresh() const override { return true; }
    Step on_found(const std::optional<FoundValue>& found) override {
        if (!found) return {Then::write, {ValueWrite::How::create, seed_}, {}, {}};
        value_ = *found;
        return {Then::unchanged, {}, {}, {}};
    }
    Step on_refused(Errc) override { return {}; }
    void on_written(const ValueWrite& write, std::optional<std::int32_t> version) override {
        value_ = {write.data, 0};
        is_latest_ = version.has_value();
    }

    const FoundValue& value() const noexcept { return value_; }  // when it has ended, changed or not
    /// As of the answer. Not if that was lost and the node turned out to have been made: others may have written since,
    /// and a watch of this session may have told of it already.
    std::optional<FoundValue> latest() const { return is_latest_ ? std::optional(value_) : std::nullopt; }

private:
    const std::string seed_;
    FoundValue value_;
    bool is_latest_ = true;
};

/// Makes the node, where there is none.
class CreateOnly final : public ValueUpdateRule {
public:
    explicit CreateOnly(std::string data) : data_(std::move(data)) {}

    Step begin() override { return {Then::write, {ValueWrite::How::create, data_}, {}, {}}; }
    Step on_found(const std::optional<FoundValue>&) override { return begin(); }
    Step on_refused(Errc) override { return {Then::unchanged, {}, {}, {}}; }
    void on_written(const ValueWrite&, std::optional<std::int32_t>) override {}

private:
    const std::string data_;
};

/// Writes where the data are those of a version that the caller knows.
class OverwriteVersion final : public ValueUpdateRule {
public:
    OverwriteVersion(std::string data, std::int32_t version) : data_(std::move(data)), version_(version) {}

    Step begin() override { return {Then::write, {ValueWrite::How::set, data_, version_}, {}, {}}; }
    Step on_found(const std::optional<FoundValue>&) override { return begin(); }
    Step on_refused(Errc) override { return {Then::unchanged, {}, {}, {}}; }
    void on_written(const ValueWrite&, std::optional<std::int32_t> version) override { written_ = version; }

    const std::string& data() const noexcept { return data_; }
    std::optional<std::int32_t> version() const noexcept { return written_; }

private:
    const std::string data_;
    const std::int32_t version_;
    std::optional<std::int32_t> written_;
};

}  // namespace zkrecipes::internal
