#include "core/value/value_update_rules.hpp"

#include "core/value/big_endian.hpp"

namespace zkrecipes::internal {

std::string NumberFormat::write(std::int64_t number) const {
    return bytes == 8 ? to_big_endian(number) : to_big_endian(static_cast<std::int32_t>(number));
}

std::optional<std::int64_t> NumberFormat::read(const std::string& data) const {
    if (data.empty()) return 0;
    if (bytes == 8) return from_big_endian<std::int64_t>(data);
    return from_big_endian<std::int32_t>(data);
}

std::string NumberFormat::problem(const std::string& data) const {
    return "the node holds " + std::to_string(data.size()) + " bytes, and a number of this kind has " +
           std::to_string(bytes) + ": it is something else, or a number of another size; nothing was written";
}

ValueUpdateRule::Step NumberChange::on_found(const std::optional<FoundValue>& found) {
    const std::string data = found ? found->data : "";
    const auto number = format_.read(data);
    if (!number) return {Then::fail, {}, Errc::bad_data, format_.problem(data)};
    before_ = after_ = *number;
    if (kind_ == Kind::compare && before_ != expected_) return {Then::unchanged, {}, {}, {}};
    if (!compute()) {
        after_ = before_;
        return {Then::fail,
                {},
                Errc::bad_option,
                "it is " + std::to_string(before_) + ", and the result would not fit " + std::to_string(format_.bytes) +
                    " bytes; nothing was written"};
    }
    ValueWrite write{ValueWrite::How::create, format_.write(after_)};
    if (found) {
        write.how = ValueWrite::How::set;
        write.version = found->version;
    }
    return {Then::write, std::move(write), {}, {}};
}

/// False: it would not fit.
bool NumberChange::compute() {
    bool overflow = false;
    switch (kind_) {
        case Kind::add: overflow = __builtin_add_overflow(before_, operand_, &after_); break;
        case Kind::subtract: overflow = __builtin_sub_overflow(before_, operand_, &after_); break;
        case Kind::exchange:
        case Kind::compare: after_ = operand_; break;
    }
    return !overflow && format_.fits(after_);
}

}  // namespace zkrecipes::internal
