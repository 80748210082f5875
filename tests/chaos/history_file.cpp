#include "chaos/history_file.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace zkrecipes::chaos {

namespace {

class Writer {
public:
    Writer(const std::string& file, const RoundResult& result) : out_(file), result_(result) {
        if (!out_) throw std::runtime_error("cannot write " + file);
        for (const auto& hold : result.record.holds) {
            if (origin_ == 0 || hold.granted_at < origin_) origin_ = hold.granted_at;
        }
    }

    void write(const RoundOptions& options) {
        line({{"round", options.number}, {"seed", options.seed}, {"timeout_ms", options.timeout.count()}});
        for (const auto& met : result_.met) {
            boost::json::object fault = {{"fault", met.nemesis}, {"begun", at(met.begun)}, {"healed", at(met.healed)}};
            if (met.recovered != 0) fault["recovered"] = at(met.recovered);
            if (!met.failed.empty()) fault["failed"] = met.failed;
            line(fault);
        }
        for (const auto& excuse : result_.record.excuses) {
            line({{"excuse", at(excuse.at)},
                  {"lock", excuse.lock},
                  {"node", excuse.node},
                  {"actor", excuse.actor},
                  {"session", excuse.session},
                  {"surely", excuse.surely}});
        }
        for (const int actor : result_.record.killed) line({{"killed", actor}});
        write_holds();
        write_registers();
        write_findings();
    }

private:
    double at(Stamp stamp) const { return stamp == 0 ? 0 : to_ms(stamp - origin_); }
    void line(const boost::json::object& json) { out_ << boost::json::serialize(json) << '\n'; }

    void write_holds() {
        auto holds = result_.record.holds;
        std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) { return a.granted_at < b.granted_at; });
        static const char* const kModes[] = {"exclusive", "shared", "lease"};
        for (const auto& hold : holds) {
            boost::json::object json = {{"hold", hold.lock},
                                        {"recipe", to_string(recipe_of(hold.lock))},
                                        {"mode", kModes[static_cast<int>(hold.mode)]},
                                        {"actor", hold.actor},
                                        {"token", hold.token},
                                        {"handovers", hold.handovers},
                                        {"node", hold.node},
                                        {"session", hold.session},
                                        {"granted", at(hold.granted_at)},
                                        {"last_true", at(hold.last_true_at)}};
            const std::pair<const char*, Stamp> stamps[] = {
                {"first_false", hold.first_false_at}, {"lost", hold.lost_at},       {"released", hold.released_at},
                {"stopped", hold.stopped_at},         {"resumed", hold.resumed_at}, {"wrote", hold.last_write_at}};
            for (const auto& [name, stamp] : stamps) {
                if (stamp != 0) json[name] = at(stamp);
            }
            json["writes"] = hold.writes;
            json["fenced"] = hold.fenced;
            json["refused"] = hold.refused;
            line(json);
        }
    }

    void write_registers() {
        for (const auto& [lock, value] : result_.record.counters) line({{"counter", lock}, {"value", value}});
        for (const auto& [lock, account] : result_.record.fenced) {
            boost::json::array accepted;
            for (const auto& [token, number] : account.accepted) accepted.push_back(boost::json::array{token, number});
            line({{"register", lock}, {"value", account.value}, {"accepted", accepted}});
        }
    }

    void write_findings() {
        for (const auto& finding : result_.verdict.findings)
            line({{"finding", to_string(finding.violation)}, {"lock", finding.lock}, {"text", finding.text}});
        for (const auto& stuck : result_.stuck) line({{"finding", "stuck"}, {"text", stuck.text}});
        for (const auto& text : result_.disagreed) line({{"servers disagree", text}});
        for (const auto& text : result_.excused) line({{"waited there", text}});
        for (const auto& text : result_.left) line({{"finding", "left behind"}, {"text", text}});
        for (const auto& text : result_.errors) line({{"finding", "error"}, {"text", text}});
    }

    std::ofstream out_;
    const RoundResult& result_;
    Stamp origin_ = 0;
};

}  // namespace

void write_history(const std::string& file, const RoundOptions& options, const RoundResult& result) {
    Writer(file, result).write(options);
}

}  // namespace zkrecipes::chaos
