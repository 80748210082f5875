#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <zkrecipes/error.hpp>

#include "session/options_check.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kLargestFile = 1024 * 1024;

/// A file that an option names. Messages begin with the option, so that programs can name their own in its place.
class OptionFile {
public:
    OptionFile(const char* option, const std::string& path) : option_(option), path_(path) {
        if (path.empty()) refuse("no file is given; all of ca_file, certificate_file and key_file are needed");
        if (path.find(',') != std::string::npos) {
            refuse("the name " + path + " has a comma, which the C client takes for the end of the name; rename it");
        }
        std::error_code error;
        path_ = std::filesystem::absolute(path, error).lexically_normal().string();
        if (error) refuse("cannot find out the directory of " + path + ": " + error.message());
        read();
    }
    [[noreturn]] void refuse(const std::string& problem) const {
        throw Error(Errc::bad_option, "session", {}, "SessionOptions::" + std::string(option_) + ": " + problem);
    }
    void must_be_private() const {
        if ((mode_ & 077) != 0) refuse(path_ + " can be read or written by others; chmod 600 " + path_);
    }
    void must_contain(std::string_view mark, const char* what) const {
        if (text_.find(mark) == std::string::npos) refuse(path_ + " holds no " + what + " in PEM; choose another file");
    }
    void must_not_be_encrypted() const {
        if (text_.find("ENCRYPTED") == std::string::npos) return;
        refuse(path_ + " is encrypted; decrypt it by openssl pkey -in " + path_ + " -out FILE, with chmod 600 FILE");
    }
    const std::string& path() const { return path_; }
    const std::string& text() const { return text_; }

private:
    void read() {
        const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        const int error = errno;
        if (fd < 0) refuse("cannot read " + path_ + ": " + std::generic_category().message(error));
        struct stat status {};
        const bool usable = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
        mode_ = status.st_mode;
        std::array<char, 4096> buffer;
        ssize_t got = 0;
        while (usable && text_.size() < kLargestFile && (got = ::read(fd, buffer.data(), buffer.size())) > 0) {
            text_.append(buffer.data(), static_cast<std::size_t>(got));
        }
        ::close(fd);
        if (!usable) refuse(path_ + " is not a regular file");
    }

    const char* const option_;
    std::string path_;
    std::string text_;
    mode_t mode_ = 0;
};

TlsOptions checked_tls(const TlsOptions& tls) {
    const OptionFile authorities("tls::ca_file", tls.ca_file);
    authorities.must_contain("-----BEGIN ", "certificate");
    const OptionFile certificate("tls::certificate_file", tls.certificate_file);
    certificate.must_contain("CERTIFICATE-----", "certificate");
    const OptionFile key("tls::key_file", tls.key_file);
    key.must_be_private();
    key.must_not_be_encrypted();
    key.must_contain("PRIVATE KEY-----", "private key");
    return {authorities.path(), certificate.path(), key.path(), tls.server_name};
}

[[noreturn]] void refuse_sasl(const std::string& problem) {
    throw Error(Errc::bad_option, "session", {}, "SessionOptions::sasl" + problem);
}

SaslOptions checked_sasl(SaslOptions sasl) {
    if (sasl.mechanism != "DIGEST-MD5") {
        refuse_sasl("::mechanism: \"" + sasl.mechanism + "\" is not possible; use DIGEST-MD5");
    }
    if (sasl.user.empty()) refuse_sasl("::user: the user is missing");
    if (sasl.service.empty()) refuse_sasl("::service: the service is missing; ZooKeeper servers use zookeeper");
    if (sasl.host.empty()) refuse_sasl("::host: the host is missing; ZooKeeper servers use zk-sasl-md5");
    if (!sasl.password.empty() && !sasl.password_file.empty()) {
        refuse_sasl("::password_file: password and password_file are both set; set one of them");
    }
    if (!sasl.password_file.empty()) {
        const OptionFile file("sasl::password_file", sasl.password_file);
        file.must_be_private();
        sasl.password = file.text().substr(0, file.text().find('\n'));
        if (sasl.password.ends_with('\r')) sasl.password.pop_back();
        if (sasl.password.empty())
            file.refuse("the first line of " + file.path() + " is empty; write the password there");
        sasl.password_file.clear();
    }
    if (sasl.password.empty()) refuse_sasl("::password_file: the password is missing");
    return sasl;
}

}  // namespace

void check_encryption(const SessionOptions& options, CheckedOptions& out) {
    if (options.tls && options.sasl) {
        refuse_sasl(
            ": the ZooKeeper C client cannot use TLS and SASL at the same time; use one of them (the servers can also "
            "authenticate the certificate of a client), or SASL through stunnel");
    }
    if (options.tls) out.tls = checked_tls(*options.tls);
    if (options.sasl) out.sasl = checked_sasl(*options.sasl);
}

}  // namespace zkrecipes::internal
