/** Each rule of the server's settings, broken once, with the expected code and variable. */

import { BACKUPS } from './backup-rows.ts'
import {
  APPLICATION,
  DANGLING,
  DIR,
  FIFO,
  FOLDER,
  file,
  LINK,
  MANAGED,
  OVERSIZED,
  PEPPER,
  ROOT,
  TOKEN,
  URL_OK,
} from './environments.ts'
import { STORAGE } from './storage-rows.ts'
import { TLS_ROWS } from './tls-rows.ts'
import { TRACES } from './trace-rows.ts'

export type Environment = Readonly<Record<string, string | undefined>>
/** The rule, the code, the reported variables, and the settings on top of the valid base. */
export type Row = readonly [rule: string, code: string, name: string, environment: Environment]

const ID_URL = 'SERVICE_IDENTITY_DATABASE_URL'
const ID_FILE = 'SERVICE_IDENTITY_DATABASE_URL_FILE'
const ID_OLD = 'SERVICE_DATABASE_URL'
const ID_OLD_FILE = 'SERVICE_DATABASE_URL_FILE'
const PEP = 'SERVICE_PLATFORM_IDENTITY_PEPPER'
const PEP_FILE = 'SERVICE_PLATFORM_IDENTITY_PEPPER_FILE'
const DOC_URL = 'SERVICE_PLATFORM_DATABASE_URL'
const DOC_OLD = 'SERVICE_PRODUCT_DATABASE_URL'
const STATE = 'SERVICE_STATE_DIRECTORY'
const LISTEN = 'SERVICE_MANAGEMENT_LISTEN'
const LISTEN_TLS = 'SERVICE_MANAGEMENT_TLS_TERMINATED'
const PUBLIC = 'SERVICE_PUBLIC_MANAGEMENT_URL'
const M_TOKEN = 'SERVICE_PLATFORM_MANAGED_ENROLLMENT_TOKEN'
const M_AUTH = 'SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY'
const A_LISTEN = 'SERVICE_APPLICATION_LISTEN'
const A_TLS = 'SERVICE_APPLICATION_TLS_TERMINATED'
const ORIGINS = 'SERVICE_PRODUCT_ALLOWED_ORIGINS'
const AUTH_CONFIG = 'SERVICE_PRODUCT_AUTH_CONFIG'
const P_ROOT = 'SERVICE_PRODUCT_ROOT'
const SANDBOX = 'SERVICE_RUNNER_SANDBOX'
const NETWORKS = 'SERVICE_ACTION_ALLOWED_NETWORKS'
const S3_HOST = 'SERVICE_S3_HOST'
const PROCESSES = 'SERVICE_APPLICATION_PROCESSES'
const TARGET_MIB = 'SERVICE_MEMORY_TARGET'
const REQUEST_MIB = 'SERVICE_REQUEST_MEMORY_MIB'
const RESPONSE_MIB = 'SERVICE_RESPONSE_MEMORY_MIB'
const CONNECTIONS = 'SERVICE_REALTIME_CONNECTIONS_MAX'
const OF_CREDENTIAL = 'SERVICE_REALTIME_CONNECTIONS_PER_CREDENTIAL_MAX'
const OF_PEER = 'SERVICE_REALTIME_CONNECTIONS_PER_PEER_MAX'
const REALTIME_MIB = 'SERVICE_REALTIME_MEMORY_MIB'
const SEGMENT_MIB = 'SERVICE_LOG_SEGMENT_MIB'
const LOG_DAYS = 'SERVICE_LOG_RETENTION_DAYS'
const AUDIT_DAYS = 'SERVICE_AUDIT_RETENTION_DAYS'
const SESSION_DAYS = 'SERVICE_SESSION_RETENTION_DAYS'
const SEGMENT_SECONDS = 'SERVICE_LOG_SEGMENT_SECONDS'
const OIDC = 'SERVICE_PLATFORM_OIDC_CONFIG'
const INVALID = 'SERVER_CONFIGURATION_INVALID'
const MISSING = 'SERVER_CONFIGURATION_MISSING'
const URL_INVALID = 'SERVER_DATABASE_URL_INVALID'
const CONFLICT = 'SERVER_SECRET_CONFIGURATION_CONFLICT'
const INCOMPLETE = 'SERVER_MANAGED_SOURCE_CONFIGURATION_INCOMPLETE'
const AUTHORITY = 'SERVER_MANAGED_SOURCE_AUTHORITY_INVALID'
const WORKLOADS = 'SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG'
const OIDC_INVALID = 'SERVER_OIDC_CONFIG_INVALID'

const none = undefined
const fromFile = (path: string): Environment => ({ [PEP]: none, [PEP_FILE]: path })

const SOURCES: readonly Row[] = [
  ['the identity URL is required', MISSING, ID_URL, { [ID_URL]: none }],
  ['an empty identity URL is missing', MISSING, ID_URL, { [ID_URL]: '' }],
  ['an empty legacy URL is missing', MISSING, ID_OLD, { [ID_URL]: none, [ID_OLD]: '' }],
  ['the pepper is required', MISSING, PEP, { [PEP]: none }],
  ['an empty pepper is missing', MISSING, PEP, { [PEP]: '' }],
  ['an empty file path is missing', MISSING, PEP_FILE, fromFile('')],
  ['an empty file is missing', MISSING, PEP_FILE, fromFile(file('empty', ''))],
  ['a file of one newline is missing', MISSING, PEP_FILE, fromFile(file('newline', '\n'))],
  ['the state directory is required', MISSING, STATE, { [STATE]: none }],
  ['an empty state directory is missing', MISSING, STATE, { [STATE]: '' }],
  ['an empty optional setting is rejected', INVALID, P_ROOT, { [P_ROOT]: '' }],
  ['an empty listener is rejected', INVALID, LISTEN, { [LISTEN]: '' }],
  ['an empty optional secret is rejected', INVALID, M_TOKEN, { [M_TOKEN]: '' }],
  ['direct and file URL conflict', CONFLICT, `${ID_URL}, ${ID_FILE}`, { [ID_FILE]: '/canary' }],
  ['equal canonical and legacy conflict', CONFLICT, `${ID_URL}, ${ID_OLD}`, { [ID_OLD]: URL_OK }],
  [
    'canonical and legacy file conflict',
    CONFLICT,
    `${ID_URL}, ${ID_OLD_FILE}`,
    { [ID_OLD_FILE]: '/canary' },
  ],
  [
    'canonical file and legacy file conflict',
    CONFLICT,
    `${ID_FILE}, ${ID_OLD_FILE}`,
    { [ID_URL]: none, [ID_FILE]: '/canary', [ID_OLD_FILE]: '/canary' },
  ],
  ['even an empty second source conflicts', CONFLICT, `${PEP}, ${PEP_FILE}`, { [PEP_FILE]: '' }],
  ['direct and file pepper conflict', CONFLICT, `${PEP}, ${PEP_FILE}`, { [PEP_FILE]: '/canary' }],
  [
    'direct and file token conflict',
    CONFLICT,
    `${M_TOKEN}, ${M_TOKEN}_FILE`,
    { ...MANAGED, [`${M_TOKEN}_FILE`]: '/canary' },
  ],
  [
    'platform URL and legacy Product URL conflict',
    CONFLICT,
    `${DOC_URL}, ${DOC_OLD}`,
    { ...ROOT, [DOC_URL]: URL_OK, [DOC_OLD]: URL_OK },
  ],
  ['a secret file path is absolute', INVALID, PEP_FILE, fromFile('canary/pepper')],
  ['a secret file exists', INVALID, PEP_FILE, fromFile('/canary/missing')],
  ['a secret file is no symbolic link', INVALID, PEP_FILE, fromFile(LINK)],
  ['a secret file is no dangling link', INVALID, PEP_FILE, fromFile(DANGLING)],
  ['a secret file is no FIFO, which must not block', INVALID, PEP_FILE, fromFile(FIFO)],
  ['a secret file is no directory', INVALID, PEP_FILE, fromFile(FOLDER)],
  ['a secret file is no device', INVALID, PEP_FILE, fromFile('/dev/zero')],
  ['a secret file has at most 64 KiB', INVALID, PEP_FILE, fromFile(OVERSIZED)],
  ['a secret file has one line', INVALID, PEP_FILE, fromFile(file('two', `${PEPPER}\ncanary`))],
  [
    'a second trailing newline is rejected',
    INVALID,
    PEP_FILE,
    fromFile(file('nn', `${PEPPER}\n\n`)),
  ],
  ['a carriage return is rejected', INVALID, PEP_FILE, fromFile(file('crlf', `${PEPPER}\r\n`))],
  ['a byte order mark is rejected', INVALID, PEP_FILE, fromFile(file('bom', `\ufeff${PEPPER}`))],
  [
    'a secret file is UTF-8',
    INVALID,
    ID_FILE,
    {
      [ID_URL]: none,
      [ID_FILE]: file('latin', Buffer.from('postgres://canary/caf\xe9', 'latin1')),
    },
  ],
  ['a direct secret has one line', INVALID, PEP, { [PEP]: `${PEPPER}\n` }],
  [
    'a direct secret has at most 64 KiB',
    INVALID,
    ID_URL,
    { [ID_URL]: `postgres://canary.test/${'canary'.repeat(11_000)}` },
  ],
  ['the pepper has no padding', INVALID, PEP, { [PEP]: `${PEPPER}=` }],
  ['the pepper has 32 bytes, not 31', INVALID, PEP, { [PEP]: PEPPER.slice(0, -1) }],
  ['the pepper has 32 bytes, not 33', INVALID, PEP, { [PEP]: `${PEPPER}A` }],
  ['the pepper is URL-safe', INVALID, PEP, { [PEP]: `${PEPPER.slice(0, -2)}+A` }],
  ['the pepper has no stray bits', INVALID, PEP, { [PEP]: `${PEPPER.slice(0, -1)}B` }],
]

const url = (text: string): Environment => ({ [ID_URL]: text })
const DATABASES: readonly Row[] = [
  ['the scheme is postgres', URL_INVALID, ID_URL, url('mysql://canary@canary.test/canary')],
  ['the scheme is not http', URL_INVALID, ID_URL, url('http://canary@canary.test/canary')],
  ['the URL is absolute', URL_INVALID, ID_URL, url('canary.test/canary')],
  ['the URL has a host', URL_INVALID, ID_URL, url('postgres:///canary')],
  ['userinfo is no host', URL_INVALID, ID_URL, url('postgres://canary:canary@/canary')],
  ['there is one host', URL_INVALID, ID_URL, url('postgres://canary.test,canary2.test/canary')],
  ['the URL has a database', URL_INVALID, ID_URL, url('postgres://canary.test')],
  ['the database is not empty', URL_INVALID, ID_URL, url('postgres://canary.test/')],
  ['there is one path segment', URL_INVALID, ID_URL, url('postgres://canary.test/canary/b')],
  ['there is no trailing slash', URL_INVALID, ID_URL, url('postgres://canary.test/canary/')],
  ['there is no fragment', URL_INVALID, ID_URL, url('postgres://canary.test/canary#x')],
  ['there is no blank', URL_INVALID, ID_URL, url('postgres://canary.test/canary ')],
  ['the port is in range', URL_INVALID, ID_URL, url('postgres://canary.test:65536/canary')],
  ['the port is not zero', URL_INVALID, ID_URL, url('postgres://canary.test:0/canary')],
  ['escapes are whole', URL_INVALID, ID_URL, url('postgres://u:canary%zz@canary.test/canary')],
  ['no parameter moves the host', URL_INVALID, ID_URL, url(`${URL_OK}&host=canary2.test`)],
  ['no parameter moves the user', URL_INVALID, ID_URL, url(`${URL_OK}&user=canary`)],
  [
    'the legacy name has the same rules',
    URL_INVALID,
    ID_OLD,
    { [ID_URL]: none, [ID_OLD]: 'canary' },
  ],
  [
    'the file form has the same rules',
    URL_INVALID,
    ID_FILE,
    { [ID_URL]: none, [ID_FILE]: file('url', 'ftp://canary') },
  ],
  ['the platform URL has the same rules', URL_INVALID, DOC_URL, { ...ROOT, [DOC_URL]: 'canary' }],
  [
    'its legacy name has the same rules',
    URL_INVALID,
    DOC_OLD,
    { ...ROOT, [DOC_OLD]: 'canary://x/y' },
  ],
]

const listen = (address: string): Environment => ({ [LISTEN]: address })
const ADDRESSES: readonly Row[] = [
  ['the state directory is absolute', INVALID, STATE, { [STATE]: 'canary/state' }],
  ['the state directory is not /', INVALID, STATE, { [STATE]: '/' }],
  ['another spelling of / is rejected', INVALID, STATE, { [STATE]: '/canary/..' }],
  ['doubled slashes are rejected', INVALID, STATE, { [STATE]: '//.' }],
  ['a path has no control characters', INVALID, STATE, { [STATE]: '/canary\u0007' }],
  ['a listener has a port', INVALID, LISTEN, listen('127.0.0.7')],
  ['a listener has an address', INVALID, LISTEN, listen(':4567')],
  ['a listener address is no name', INVALID, LISTEN, listen('localhost:4567')],
  ['a listener port is a number', INVALID, LISTEN, listen('127.0.0.7:canary')],
  ['a listener port is at most 65535', INVALID, LISTEN, listen('127.0.0.7:65536')],
  ['a listener port has no leading zero', INVALID, LISTEN, listen('127.0.0.7:04567')],
  ['an IPv4 byte is at most 255', INVALID, LISTEN, listen('127.0.0.256:4567')],
  ['an IPv4 address has four bytes', INVALID, LISTEN, listen('127.7:4567')],
  ['an IPv4 byte is decimal', INVALID, LISTEN, listen('127.0.0.010:4567')],
  ['an IPv6 address has brackets', INVALID, LISTEN, listen('::1:4567')],
  ['an IPv6 address is one', INVALID, LISTEN, listen('[::g]:4567')],
  ['an IPv6 address has no zone', INVALID, LISTEN, listen('[fe80::1%canary]:4567')],
  ['a listener has no scheme', INVALID, LISTEN, listen('http://127.0.0.7:4567')],
  ['a public listener needs TLS', INVALID, LISTEN, listen('10.11.12.13:4567')],
  ['a wildcard listener needs TLS', INVALID, LISTEN, listen('0.0.0.0:4567')],
  ['an IPv6 wildcard needs TLS', INVALID, LISTEN, listen('[::]:4567')],
  ['a mapped loopback is not loopback', INVALID, LISTEN, listen('[::ffff:127.0.0.1]:4567')],
  ['TLS is asserted by true alone', INVALID, LISTEN_TLS, { [LISTEN_TLS]: 'TRUE' }],
  ['TLS is not asserted by 1', INVALID, LISTEN_TLS, { [LISTEN_TLS]: '1canary' }],
  ['the public URL is an origin', INVALID, PUBLIC, { [PUBLIC]: 'https://canary.test/' }],
  ['the public URL has no path', INVALID, PUBLIC, { [PUBLIC]: 'https://canary.test/a' }],
  ['the public URL is lower case', INVALID, PUBLIC, { [PUBLIC]: 'https://Canary.test' }],
  [
    'the public URL omits the default port',
    INVALID,
    PUBLIC,
    { [PUBLIC]: 'https://canary.test:443' },
  ],
  ['the public URL is HTTPS', INVALID, PUBLIC, { [PUBLIC]: 'http://canary.test' }],
  ['localhost is not literal loopback', INVALID, PUBLIC, { [PUBLIC]: 'http://localhost:4567' }],
  ['a loopback-like name is a name', INVALID, PUBLIC, { [PUBLIC]: 'http://127.0.0.1.canary.test' }],
  ['the public URL is not a pattern', INVALID, PUBLIC, { [PUBLIC]: 'https://*.canary.test' }],
  ['the public URL has no userinfo', INVALID, PUBLIC, { [PUBLIC]: 'https://canary@a.test' }],
  ['the public URL is a URL', INVALID, PUBLIC, { [PUBLIC]: 'canary' }],
]

const root = (name: string, value: string): Environment => ({ ...ROOT, [name]: value })
const app = (name: string, value: string): Environment => ({ ...APPLICATION, [name]: value })
const many = Array.from({ length: 65 }, (_, i) => `https://canary${i}.test`).join()
const networks = Array.from({ length: 65 }, (_, i) => `10.${i}.0.0/16`).join()
const PRODUCT: readonly Row[] = [
  ['the Product root is absolute', INVALID, P_ROOT, { [P_ROOT]: 'canary' }],
  ['the Product root is not /', INVALID, P_ROOT, { [P_ROOT]: '/' }],
  ['an application listener needs TLS', INVALID, A_LISTEN, { ...APPLICATION, [A_TLS]: none }],
  ['application TLS needs a listener', INVALID, A_TLS, { ...APPLICATION, [A_LISTEN]: none }],
  ['application TLS is exactly true', INVALID, A_TLS, { ...APPLICATION, [A_TLS]: 'yes-canary' }],
  ['at least one process answers applications', INVALID, PROCESSES, app(PROCESSES, '0')],
  ['at most 64 processes answer applications', INVALID, PROCESSES, app(PROCESSES, '65')],
  ['the pair needs the Product root', INVALID, A_LISTEN, { ...APPLICATION, [P_ROOT]: none }],
  [
    'the application listener is an address',
    INVALID,
    A_LISTEN,
    { ...APPLICATION, [A_LISTEN]: 'canary:1' },
  ],
  [
    'the listeners differ',
    INVALID,
    A_LISTEN,
    { ...APPLICATION, [A_LISTEN]: '[::1]:4567', [LISTEN]: '[0:0::1]:4567' },
  ],
  [
    'every address includes one of them',
    INVALID,
    A_LISTEN,
    { ...APPLICATION, [A_LISTEN]: '0.0.0.0:4567', [LISTEN]: '127.0.0.7:4567' },
  ],
  [
    'every IPv6 address includes those of IPv4',
    INVALID,
    A_LISTEN,
    { ...APPLICATION, [A_LISTEN]: '127.0.0.9:4567', ...listen('[::]:4567'), [LISTEN_TLS]: 'true' },
  ],
  ['the platform URL needs the Product root', INVALID, DOC_URL, { [DOC_URL]: URL_OK }],
  ['the host of S3 needs a listener', INVALID, S3_HOST, root(S3_HOST, 's3.canary.test')],
  ['the host of S3 has no port', INVALID, S3_HOST, app(S3_HOST, 's3.canary.test:8443')],
  ['the host of S3 has no scheme', INVALID, S3_HOST, app(S3_HOST, 'https://s3.canary.test')],
  ['the host of S3 is in lower case', INVALID, S3_HOST, app(S3_HOST, 'S3.canary.test')],
  ['the host of S3 is no pattern', INVALID, S3_HOST, app(S3_HOST, '*.canary.test')],
  ['origins need the Product root', INVALID, ORIGINS, { [ORIGINS]: 'https://canary.test' }],
  ['the descriptor needs the Product root', INVALID, AUTH_CONFIG, { [AUTH_CONFIG]: 'canary.json' }],
  ['at most 64 origins', INVALID, ORIGINS, root(ORIGINS, many)],
  ['an origin has no path', INVALID, ORIGINS, root(ORIGINS, 'https://canary.test/')],
  ['an origin is not a pattern', INVALID, ORIGINS, root(ORIGINS, 'https://*.canary.test')],
  ['an origin is not *', INVALID, ORIGINS, root(ORIGINS, 'canary,*')],
  ['an origin is not null', INVALID, ORIGINS, root(ORIGINS, 'null,https://canary.test')],
  [
    'origins have no blanks',
    INVALID,
    ORIGINS,
    root(ORIGINS, 'https://canary.test, https://b.test'),
  ],
  ['no empty origin', INVALID, ORIGINS, root(ORIGINS, 'https://canary.test,')],
  [
    'no repeated origin',
    INVALID,
    ORIGINS,
    root(ORIGINS, 'https://canary.test,https://canary.test'),
  ],
  ['an origin is of the web', INVALID, ORIGINS, root(ORIGINS, 'ftp://canary.test')],
  ['the memory target is a number', INVALID, TARGET_MIB, { [TARGET_MIB]: '1 canary' }],
  ['the memory target has a minimum', INVALID, TARGET_MIB, { [TARGET_MIB]: '255' }],
  [
    'the memory target has room for each process',
    INVALID,
    TARGET_MIB,
    { ...app(PROCESSES, '3'), [TARGET_MIB]: '511' },
  ],
  ['the memory target has a maximum', INVALID, TARGET_MIB, { [TARGET_MIB]: '1048577' }],
  ['memory of bodies is a number', INVALID, REQUEST_MIB, { [REQUEST_MIB]: '256 canary' }],
  ['memory of bodies has room for a few', INVALID, REQUEST_MIB, { [REQUEST_MIB]: '127' }],
  ['memory of responses has room for a few', INVALID, RESPONSE_MIB, { [RESPONSE_MIB]: '127' }],
  ['memory of responses has a maximum', INVALID, RESPONSE_MIB, { [RESPONSE_MIB]: '65537' }],
  ['no connections', INVALID, CONNECTIONS, { [CONNECTIONS]: '0' }],
  ['connections in words', INVALID, OF_CREDENTIAL, { [OF_CREDENTIAL]: 'many' }],
  ['memory of subscriptions has room for a few', INVALID, REALTIME_MIB, { [REALTIME_MIB]: '127' }],
  ['a million and one connections', INVALID, OF_PEER, { [OF_PEER]: '1000001' }],
  ['a segment without bytes', INVALID, SEGMENT_MIB, { [SEGMENT_MIB]: '0' }],
  ['a segment of two days', INVALID, SEGMENT_SECONDS, { [SEGMENT_SECONDS]: '172800' }],
  ['a retention of no day', INVALID, LOG_DAYS, { [LOG_DAYS]: '0' }],
  ['an archive of no day', INVALID, 'SERVICE_LOG_ARCHIVE_DAYS', { SERVICE_LOG_ARCHIVE_DAYS: '0' }],
  ['an audit of ten years and a day', INVALID, AUDIT_DAYS, { [AUDIT_DAYS]: '3651' }],
  ['ended sessions of no day', INVALID, SESSION_DAYS, { [SESSION_DAYS]: '0' }],
  ['networks need the Product root', INVALID, NETWORKS, { [NETWORKS]: '10.0.0.0/8' }],
  ['at most 64 networks', INVALID, NETWORKS, root(NETWORKS, networks)],
  ['a network is no address', INVALID, NETWORKS, root(NETWORKS, '10.0.0.1')],
  ['a network has no bits behind its prefix', INVALID, NETWORKS, root(NETWORKS, '10.0.0.1/8')],
  ['a network has no more bits than there are', INVALID, NETWORKS, root(NETWORKS, '10.0.0.0/33')],
  ['networks have no blanks', INVALID, NETWORKS, root(NETWORKS, '10.0.0.0/8, fd00::/8')],
  ['no repeated network', INVALID, NETWORKS, root(NETWORKS, '10.0.0.0/8,10.0.0.0/8')],
  ['the descriptor path is relative', INVALID, AUTH_CONFIG, root(AUTH_CONFIG, '/canary.json')],
  ['the descriptor path has no parent', INVALID, AUTH_CONFIG, root(AUTH_CONFIG, 'a/../../canary')],
  ['the descriptor path is not a parent', INVALID, AUTH_CONFIG, root(AUTH_CONFIG, '../canary')],
  ['the descriptor path has no dot', INVALID, AUTH_CONFIG, root(AUTH_CONFIG, './canary')],
  [
    'the descriptor path has no backslash',
    INVALID,
    AUTH_CONFIG,
    root(AUTH_CONFIG, 'a\\..\\canary'),
  ],
  [
    'the descriptor is a file',
    INVALID,
    AUTH_CONFIG,
    { [P_ROOT]: DIR, [AUTH_CONFIG]: 'canary-nowhere' },
  ],
  [
    'the descriptor is no link',
    INVALID,
    AUTH_CONFIG,
    { [P_ROOT]: DIR, [AUTH_CONFIG]: 'canary-link' },
  ],
  [
    'the descriptor is no FIFO',
    INVALID,
    AUTH_CONFIG,
    { [P_ROOT]: DIR, [AUTH_CONFIG]: 'canary-fifo' },
  ],
  [
    'the descriptor has at most 64 KiB',
    INVALID,
    AUTH_CONFIG,
    { [P_ROOT]: DIR, [AUTH_CONFIG]: 'canary-oversized' },
  ],
  ['the sandbox is required or unset', INVALID, SANDBOX, { [SANDBOX]: 'canary' }],
  ['the sandbox cannot be off', INVALID, SANDBOX, { [SANDBOX]: 'off' }],
  ['a token needs an authority', INCOMPLETE, M_TOKEN, { ...MANAGED, [M_AUTH]: none }],
  ['an authority needs a token', INCOMPLETE, M_AUTH, { ...MANAGED, [M_TOKEN]: none }],
  [
    'a token has 32 bytes',
    INVALID,
    M_TOKEN,
    { ...MANAGED, [M_TOKEN]: 'canary-0123456789-0123456789-01' },
  ],
  [
    'a token fits into a header',
    INVALID,
    M_TOKEN,
    { ...MANAGED, [M_TOKEN]: 'canary'.repeat(1400) },
  ],
  ['a token has no blank', INVALID, M_TOKEN, { ...MANAGED, [M_TOKEN]: `${TOKEN} ${TOKEN}` }],
  ['a token has no comma', INVALID, M_TOKEN, { ...MANAGED, [M_TOKEN]: `${TOKEN},` }],
  ['the authority is HTTPS', AUTHORITY, M_AUTH, { ...MANAGED, [M_AUTH]: 'http://canary.test' }],
  [
    'the authority is never loopback HTTP',
    AUTHORITY,
    M_AUTH,
    { ...MANAGED, [M_AUTH]: 'http://127.0.0.1' },
  ],
  [
    'the authority is canonical',
    AUTHORITY,
    M_AUTH,
    { ...MANAGED, [M_AUTH]: 'https://canary.test/' },
  ],
  [
    'there is one authority',
    AUTHORITY,
    M_AUTH,
    { ...MANAGED, [M_AUTH]: 'https://canary.test,https://b.test' },
  ],
  ['the OIDC path is absolute', INVALID, OIDC, { [OIDC]: 'canary/oidc.json' }],
  ['the OIDC file exists', OIDC_INVALID, OIDC, { [OIDC]: '/canary/oidc.json' }],
  ['the OIDC file is no link', OIDC_INVALID, OIDC, { [OIDC]: LINK }],
  ['the OIDC file is no FIFO', OIDC_INVALID, OIDC, { [OIDC]: FIFO }],
  ['the OIDC file has at most 64 KiB', OIDC_INVALID, OIDC, { [OIDC]: OVERSIZED }],
  ['the OIDC file is JSON', OIDC_INVALID, OIDC, { [OIDC]: file('text', 'canary') }],
  ['the workload path is absolute', INVALID, WORKLOADS, { [WORKLOADS]: 'canary/oidc.json' }],
  ['the workload file exists', OIDC_INVALID, WORKLOADS, { [WORKLOADS]: '/canary/oidc.json' }],
  ['the workload file is JSON', OIDC_INVALID, WORKLOADS, { [WORKLOADS]: file('text', 'canary') }],
]

export const ROWS = [
  ...SOURCES,
  ...DATABASES,
  ...ADDRESSES,
  ...PRODUCT,
  ...STORAGE,
  ...BACKUPS,
  ...TLS_ROWS,
  ...TRACES,
]
