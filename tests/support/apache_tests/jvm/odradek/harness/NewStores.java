package odradek.harness;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import net.bytebuddy.asm.Advice;

/** Tests make their key stores in PKCS12: the configuration may go on to call it JKS, and Java reads it under that name. */
final class NewStores {
    private NewStores() {}

    @Advice.OnMethodExit
    static void createEmptyKeyStore(@Advice.Return(readOnly = false) KeyStore store) throws GeneralSecurityException, IOException {
        store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
    }
}
