package odradek.harness;

import net.bytebuddy.asm.Advice;

/** Tests sign their certificates with SHA-256: OpenSSL asks clients for none that is signed with SHA-1. */
final class NewCertificates {
    private NewCertificates() {}

    @Advice.OnMethodEnter
    static void constructor(@Advice.Argument(value = 1, readOnly = false) String algorithm) {
        algorithm = algorithm.replace("SHA1with", "SHA256with");
    }
}
