#include "testing/data_tree.hpp"

#include <algorithm>
#include <array>

namespace zkrecipes::sim {

NodeStat Node::stat() const {
    NodeStat stat;
    stat.czxid = czxid;
    stat.mzxid = mzxid;
    stat.pzxid = pzxid;
    stat.ctime_ms = ctime_ms;
    stat.mtime_ms = mtime_ms;
    stat.version = version;
    // Clients are shown creates plus deletes: twice the creates, less what is still there.
    stat.cversion = static_cast<std::int32_t>(static_cast<std::uint32_t>(cversion) * 2U -
                                              static_cast<std::uint32_t>(children.size()));
    stat.data_length = static_cast<std::int32_t>(data.size());
    stat.num_children = static_cast<std::int32_t>(children.size());
    stat.ephemeral_owner = owner;
    return stat;
}

std::string parent_of(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == 0 || slash == std::string_view::npos ? "/" : std::string(path.substr(0, slash));
}

std::string name_of(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

const std::string& first_in_queue(const std::set<std::string>& names) {
    const auto number = [](std::string_view name) {
        return name.substr(name.size() - std::min<std::size_t>(10, name.size()));
    };
    return *std::min_element(names.begin(), names.end(),
                             [&](const auto& a, const auto& b) { return number(a) < number(b); });
}

std::vector<Acl> open_acl() { return {Acl{}}; }

DataTree::DataTree(bool keeper) : keeper_(keeper) {
    const auto open = std::make_shared<const std::vector<Acl>>(open_acl());
    for (const char* path : {"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}) nodes_[path].acl = open;
    nodes_["/"].children = {"zookeeper"};
    nodes_["/zookeeper"].children = {"config", "quota"};
}

const Node* DataTree::find(const std::string& path) const {
    const auto found = nodes_.find(path);
    return found == nodes_.end() ? nullptr : &found->second;
}

void DataTree::create(const Effect& effect, const Txn& txn, std::vector<WatchEvent>& events) {
    const std::string parent_path = parent_of(effect.path);
    Node& parent = nodes_.at(parent_path);
    // Only ever raised: at 2^31 - 1 it sticks, and the next number is given twice.
    if (effect.parent_cversion > parent.cversion) {
        parent.cversion = effect.parent_cversion;
        parent.pzxid = txn.zxid;
    }
    parent.children.insert(name_of(effect.path));
    Node& node = nodes_[effect.path];
    node.data = effect.data;
    node.acl = effect.acl;
    node.czxid = node.mzxid = node.pzxid = txn.zxid;
    node.ctime_ms = node.mtime_ms = txn.time_ms;
    node.owner = effect.owner;
    node.container = effect.container;
    node.cversion = first_number(effect.path);
    first_numbers_.erase(effect.path);
    if (effect.owner != 0) ephemerals_[effect.owner].insert(effect.path);
    if (effect.container) containers_.insert(effect.path);
    events.push_back({WatchEventType::created, effect.path, node.acl});
    events.push_back({WatchEventType::children_changed, parent_path, parent.acl});
}

void DataTree::remove(const std::string& path, const Txn& txn, std::vector<WatchEvent>& events) {
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return;
    if (found->second.owner != 0) {
        const auto owned = ephemerals_.find(found->second.owner);
        if (owned != ephemerals_.end()) {
            owned->second.erase(path);
            if (owned->second.empty()) ephemerals_.erase(owned);
        }
    }
    if (found->second.container) containers_.erase(path);
    events.push_back({WatchEventType::deleted, path, found->second.acl});
    nodes_.erase(found);
    const std::string parent_path = parent_of(path);
    events.push_back({WatchEventType::children_changed, parent_path});
    if (const auto parent = nodes_.find(parent_path); parent != nodes_.end()) {
        events.back().acl = parent->second.acl;
        parent->second.children.erase(name_of(path));
        if (!keeper_) parent->second.pzxid = std::max(parent->second.pzxid, txn.zxid);
    }
}

void DataTree::apply(const Txn& txn, std::vector<WatchEvent>& events) {
    last_zxid_ = txn.zxid;
    stats_of_sets_.clear();
    if (txn.kind == Txn::Kind::create_session) sessions_[txn.session] = txn.timeout_ms;
    if (txn.kind == Txn::Kind::close_session) sessions_.erase(txn.session);
    for (const Effect& effect : txn.effects) {
        switch (effect.kind) {
            case Effect::Kind::create: create(effect, txn, events); break;
            case Effect::Kind::remove: remove(effect.path, txn, events); break;
            case Effect::Kind::set: {
                Node& node = nodes_.at(effect.path);
                node.data = effect.data;
                node.version = effect.version;
                node.mzxid = txn.zxid;
                node.mtime_ms = txn.time_ms;
                stats_of_sets_.push_back(node.stat());
                events.push_back({WatchEventType::changed, effect.path, node.acl});
                break;
            }
            case Effect::Kind::check:
            case Effect::Kind::error: break;
        }
    }
}

bool permits(const AclList& acl, int permission, const std::vector<std::string>& identities) {
    for (const Acl& each : *acl) {
        if ((each.permissions & permission) == 0) continue;
        if (each.scheme == "world" && each.id == "anyone") return true;
        if (std::find(identities.begin(), identities.end(), each.scheme + ":" + each.id) != identities.end())
            return true;
    }
    return false;
}

std::vector<std::string> DataTree::ephemerals_of(SessionId session) const {
    const auto found = ephemerals_.find(session);
    if (found == ephemerals_.end()) return {};
    return {found->second.begin(), found->second.end()};
}

std::size_t DataTree::ephemeral_count() const noexcept {
    std::size_t count = 0;
    for (const auto& [session, paths] : ephemerals_) count += paths.size();
    return count;
}

std::vector<std::string> DataTree::all_paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, node] : nodes_) {
        if (path != "/" && path.rfind("/zookeeper", 0) != 0) paths.push_back(path);
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::int32_t DataTree::first_number(const std::string& path) const {
    const auto found = first_numbers_.find(path);
    return found == first_numbers_.end() ? 0 : found->second;
}

std::int32_t DataTree::version_after(const std::string& path, std::int32_t version) const {
    if (version == 1 && hurried_.count(path) != 0) return -4;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(version) + 1U);
}

void DataTree::set_cversion(const std::string& path, std::int32_t cversion) { nodes_.at(path).cversion = cversion; }

namespace {

std::uint32_t rotl(std::uint32_t value, int bits) { return (value << bits) | (value >> (32 - bits)); }

std::array<unsigned char, 20> sha1(std::string message) {
    std::array<std::uint32_t, 5> h{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const std::uint64_t bits = message.size() * 8;
    message.push_back(static_cast<char>(0x80));
    while (message.size() % 64 != 56) message.push_back('\0');
    for (int shift = 56; shift >= 0; shift -= 8) message.push_back(static_cast<char>((bits >> shift) & 0xff));
    for (std::size_t block = 0; block < message.size(); block += 64) {
        std::array<std::uint32_t, 80> w{};
        for (std::size_t i = 0; i < 16; ++i) {
            for (std::size_t k = 0; k < 4; ++k) {
                w[i] = (w[i] << 8) | static_cast<unsigned char>(message[block + i * 4 + k]);
            }
        }
        for (std::size_t i = 16; i < 80; ++i) w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        auto [a, b, c, d, e] = h;
        for (std::size_t i = 0; i < 80; ++i) {
            const std::uint32_t f = i < 20   ? (b & c) | (~b & d)
                                    : i < 40 ? b ^ c ^ d
                                    : i < 60 ? (b & c) | (b & d) | (c & d)
                                             : b ^ c ^ d;
            const std::uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
            const std::uint32_t next = rotl(a, 5) + f + e + k + w[i];
            e = d;
            d = c;
            c = rotl(b, 30);
            b = a;
            a = next;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
    }
    std::array<unsigned char, 20> out{};
    for (std::size_t i = 0; i < 20; ++i) out[i] = static_cast<unsigned char>(h[i / 4] >> (24 - 8 * (i % 4)));
    return out;
}

}  // namespace

std::string digest_id(const std::string& credential) {
    static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto hash = sha1(credential);
    std::string text;
    for (std::size_t i = 0; i < 20; i += 3) {
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k) group = (group << 8) | (i + k < 20 ? hash[i + k] : 0U);
        for (std::size_t k = 0; k < 4; ++k) {
            text.push_back(i + k > 20 ? '=' : kAlphabet[(group >> (18 - 6 * k)) & 63]);
        }
    }
    return credential.substr(0, credential.find(':')) + ":" + text;
}

}  // namespace zkrecipes::sim
