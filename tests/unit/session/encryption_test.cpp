#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <zkrecipes/error.hpp>
#include <zkrecipes/testenv/scratch.hpp>

#include "session/options_check.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::HasSubstr;

/// The checks of the files, before any C client sees them.
class EncryptionTest : public ::testing::Test {
protected:
    EncryptionTest() { options.hosts = "h:1"; }

    std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) const {
        const std::string path = directory_ + "/" + name;
        std::ofstream(path) << text;
        ::chmod(path.c_str(), mode);
        return path;
    }
    void use_tls() {
        options.tls = TlsOptions{file("ca.pem", "-----BEGIN CERTIFICATE-----\n", 0644),
                                 file("c.pem", "-----BEGIN CERTIFICATE-----\n", 0644),
                                 file("k.pem", "-----BEGIN PRIVATE KEY-----\n"), "zk"};
    }
    void use_sasl() {
        options.sasl.emplace();
        options.sasl->user = "job";
        options.sasl->password_file = file("password", "se:cret \r\nsecond line\n");
    }
    void expect_refused(const std::string& begin, const std::string& in_text) const {
        try {
            check_options(options);
            ADD_FAILURE() << "accepted; expected: " << in_text;
        } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::bad_option) << error.what();
            EXPECT_THAT(error.what(), HasSubstr("SessionOptions::" + begin + ": "));
            EXPECT_THAT(error.what(), HasSubstr(in_text));
            EXPECT_THAT(error.what(), Not(HasSubstr("se:cret")));
        }
    }
    const testenv::Scratch scratch_;  // gone with the test, also if that is killed
    const std::string directory_ = scratch_.path();
    SessionOptions options;
};

TEST_F(EncryptionTest, FilesAreNamedAbsolutely) {
    use_tls();
    EXPECT_EQ(check_options(options).tls, options.tls);
    options.tls->ca_file = std::filesystem::relative(options.tls->ca_file).string();
    EXPECT_EQ(check_options(options).tls->ca_file, directory_ + "/ca.pem");
    EXPECT_FALSE(check_options(options).sasl);
}

TEST_F(EncryptionTest, ARelativeNameNeedsADirectory) {
    use_tls();
    options.tls->ca_file = "ca.pem";
    const auto before = std::filesystem::current_path();
    const std::string gone = directory_ + "/gone";
    std::filesystem::create_directory(gone);
    std::filesystem::current_path(gone);
    std::filesystem::remove(gone);
    expect_refused("tls::ca_file", "cannot find out the directory of ca.pem: No such file");
    std::filesystem::current_path(before);
}

TEST_F(EncryptionTest, EachFileMustBeThereAndOfTheRightKind) {
    use_tls();
    const TlsOptions good = *options.tls;
    options.tls->ca_file = directory_ + "/none.pem";
    expect_refused("tls::ca_file", "cannot read " + directory_ + "/none.pem: No such file");
    options.tls->ca_file = "";
    expect_refused("tls::ca_file", "no file is given");
    options.tls->ca_file = directory_;
    expect_refused("tls::ca_file", "not a regular file");
    options.tls->ca_file = file("a,b.pem", "-----BEGIN CERTIFICATE-----\n");
    expect_refused("tls::ca_file", "comma");
    options.tls->ca_file = file("ca.der", "in another format");
    expect_refused("tls::ca_file", "no certificate in PEM");
    options.tls = good;
    options.tls->certificate_file = options.tls->key_file;
    expect_refused("tls::certificate_file", "no certificate in PEM");
    options.tls = good;
    options.tls->key_file = options.tls->certificate_file;
    expect_refused("tls::key_file", "chmod 600");
    options.tls->key_file = file("x", "-----BEGIN CERTIFICATE-----\n");
    expect_refused("tls::key_file", "no private key in PEM");
    options.tls->key_file = file("x", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
    expect_refused("tls::key_file", "openssl pkey");
    for (const mode_t mode : {0640, 0604, 0620}) {
        options.tls->key_file = file("k.pem", "-----BEGIN PRIVATE KEY-----\n", mode);
        expect_refused("tls::key_file", "can be read or written by others; chmod 600 " + directory_ + "/k.pem");
    }
}

TEST_F(EncryptionTest, ThePasswordIsTheFirstLineOfItsFile) {
    use_sasl();
    const CheckedOptions checked = check_options(options);
    EXPECT_EQ(checked.sasl->password, "se:cret ");
    EXPECT_EQ(checked.sasl->password_file, "");
    options.sasl->password_file = file("password", "se:cret", 0644);
    expect_refused("sasl::password_file", "chmod 600");
    options.sasl->password_file = file("empty", "\nse:cret\n");
    expect_refused("sasl::password_file", "first line");
    options.sasl->password = "se:cret";
    expect_refused("sasl::password_file", "both set");
    options.sasl->password_file.clear();
    EXPECT_EQ(check_options(options).sasl->password, "se:cret");
    options.sasl->password.clear();
    expect_refused("sasl::password_file", "missing");
}

TEST_F(EncryptionTest, SaslHasOneMechanismAndNeedsAUser) {
    use_sasl();
    options.sasl->mechanism = "PLAIN";
    expect_refused("sasl::mechanism", "use DIGEST-MD5");
    use_sasl();
    options.sasl->user.clear();
    expect_refused("sasl::user", "missing");
    use_sasl();
    options.sasl->host.clear();
    expect_refused("sasl::host", "zk-sasl-md5");
}

TEST_F(EncryptionTest, TlsAndSaslExcludeEachOther) {
    use_tls();
    use_sasl();
    expect_refused("sasl", "stunnel");
}

TEST_F(EncryptionTest, BothCountAsCredentialsForAnAccessList) {
    options.acl = Acl::creator_all();
    EXPECT_THROW(check_options(options), Error);
    use_tls();
    check_options(options);
    options.tls.reset();
    use_sasl();
    check_options(options);
}

}  // namespace
}  // namespace zkrecipes::internal
