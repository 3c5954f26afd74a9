/** Rules of the certificate of the server, each broken once. */
import { execFileSync } from 'node:child_process'
import { selfSigned } from '../certificates.ts'
import { file, ROOT } from './environments.ts'

const INVALID = 'SERVER_CONFIGURATION_INVALID'
const CERTIFICATE = 'SERVICE_TLS_CERTIFICATE_FILE'
const KEY = 'SERVICE_TLS_KEY_FILE'
const { certificate, key } = selfSigned('canary.test')
const other = selfSigned('canary.test')
const OWN = file('canary-tls.pem', certificate)
const OWN_KEY = file('canary-tls.key', key)
const protectedKey = execFileSync(
  'openssl',
  ['pkcs8', '-topk8', '-v2', 'aes-256-cbc', '-passout', 'pass:canary'],
  { input: key },
)

/** Settings of a server that ends TLS at both of its listeners. */
export const TLS = {
  ...ROOT,
  SERVICE_APPLICATION_LISTEN: '127.0.0.9:4567',
  [CERTIFICATE]: OWN,
  [KEY]: OWN_KEY,
}
const given = (certificatePath: string | undefined, keyPath: string | undefined) => ({
  [CERTIFICATE]: certificatePath,
  [KEY]: keyPath,
})

const ACME = { ...ROOT, SERVICE_TLS_ACME_DOMAIN: 'api.canary.test' }

export const TLS_ROWS = [
  ['a certificate needs its key', INVALID, CERTIFICATE, given(OWN, undefined)],
  ['a key needs its certificate', INVALID, KEY, given(undefined, OWN_KEY)],
  ['a certificate has an absolute path', INVALID, CERTIFICATE, given('canary.pem', OWN_KEY)],
  ['a key has an absolute path', INVALID, KEY, given(OWN, 'canary.key')],
  ['a certificate is there', INVALID, CERTIFICATE, given('/canary/tls.pem', OWN_KEY)],
  ['a key is there', INVALID, KEY, given(OWN, '/canary/tls.key')],
  ['a certificate is PEM', INVALID, CERTIFICATE, given(file('canary-1', 'canary'), OWN_KEY)],
  [
    'each certificate of the chain is one',
    INVALID,
    CERTIFICATE,
    given(
      file(
        'canary-2',
        `${certificate}-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n`,
      ),
      OWN_KEY,
    ),
  ],
  ['a key is no certificate', INVALID, KEY, given(OWN, OWN)],
  ['a key has no passphrase', INVALID, KEY, given(OWN, file('canary-3', protectedKey))],
  ['a key fits its certificate', INVALID, KEY, given(OWN, file('canary-4', other.key))],
  [
    'ACME and files exclude each other',
    INVALID,
    'SERVICE_TLS_CERTIFICATE_FILE',
    { ...ACME, ...given(OWN, OWN_KEY) },
  ],
  [
    'a name of ACME is a host',
    INVALID,
    'SERVICE_TLS_ACME_DOMAIN',
    { ...ACME, SERVICE_TLS_ACME_DOMAIN: '*.canary.test' },
  ],
  [
    'an address of ACME is one',
    INVALID,
    'SERVICE_TLS_ACME_EMAIL',
    { ...ACME, SERVICE_TLS_ACME_EMAIL: 'canary' },
  ],
  [
    'a directory of ACME has TLS',
    INVALID,
    'SERVICE_TLS_ACME_DIRECTORY_URL',
    { ...ACME, SERVICE_TLS_ACME_DIRECTORY_URL: 'http://canary.test' },
  ],
  [
    'an authority of ACME is there',
    INVALID,
    'SERVICE_TLS_ACME_CA_FILE',
    { ...ACME, SERVICE_TLS_ACME_CA_FILE: '/canary/ca.pem' },
  ],
  [
    'challenges have an address',
    INVALID,
    'SERVICE_TLS_ACME_HTTP_LISTEN',
    { ...ACME, SERVICE_TLS_ACME_HTTP_LISTEN: 'canary:80' },
  ],
] as const
