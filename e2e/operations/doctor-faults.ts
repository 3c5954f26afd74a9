/** Faults of settings, machine and root that the doctor must find, each with its red checks. */
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { SERVER } from '../harness.ts'
import { artifactOf, damage, digestPath, type Fault, NOBODY, sql, store } from './doctor-site.ts'

const limited = (limit: string) => () => ({
  command: ['/bin/bash', '--norc', '-c', `${limit}; exec "$0" "$@"`, SERVER],
})

export const SETTINGS_FAULTS: readonly Fault[] = [
  {
    name: 'a misspelled setting',
    red: { 'settings-known': 'warning' },
    inject: () => ({ settings: { SERVICE_MISSPELLED: 'yes' } }),
  },
  {
    name: 'a deprecated setting',
    red: {
      'settings-deprecated': 'warning',
      'stores-of-root': 'failed',
      'documents-database-version': 'failed',
    },
    inject: () => ({ settings: { SERVICE_PRODUCT_DATABASE_URL: 'postgres://a@127.0.0.1:1/b' } }),
  },
  {
    name: 'a secret file for everybody',
    red: { 'secret-files': 'warning' },
    inject: ({ pepper }) => {
      chmodSync(pepper, 0o644)
      return { heal: () => chmodSync(pepper, 0o600) }
    },
  },
  {
    name: 'a provider whose key cannot be used',
    red: { 'jwt-provider-keys': 'failed' },
    inject: ({ root }) => {
      const provider = {
        name: 'users',
        kind: 'user',
        issuer: 'https://login.invalid/',
        audience: 'api',
        algorithms: ['ES256'],
        jwks: { keys: [{ kty: 'EC', crv: 'P-256', kid: 'k', x: 'AA', y: 'AA' }] },
      }
      const config = JSON.stringify({ version: 1, providers: [provider] })
      writeFileSync(join(root, 'providers.json'), config, { mode: 0o600 })
      return { settings: { SERVICE_PRODUCT_AUTH_CONFIG: 'providers.json' } }
    },
  },
  {
    name: 'a public URL with TLS that no setting mentions',
    red: { 'management-proxy': 'warning' },
    inject: () => ({ settings: { SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.invalid' } }),
  },
  {
    name: 'a proxy without a public URL',
    red: { 'management-url': 'warning' },
    inject: () => ({ settings: { SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' } }),
  },
  {
    name: 'pages without TLS',
    red: { 'allowed-origins': 'warning' },
    inject: () => ({ settings: { SERVICE_PRODUCT_ALLOWED_ORIGINS: 'http://app.invalid' } }),
  },
  {
    name: 'an S3-compatible store that does not answer',
    red: { 'file-store': 'failed', 'stores-of-root': 'failed' },
    inject: ({ directory }) => {
      const path = join(directory, 's3-key')
      writeFileSync(path, 'secret', { mode: 0o600 })
      return {
        settings: {
          SERVICE_STORAGE_S3_ENDPOINT: 'http://127.0.0.1:1',
          SERVICE_STORAGE_S3_BUCKET: 'files',
          SERVICE_STORAGE_S3_REGION: 'us-east-1',
          SERVICE_STORAGE_S3_ACCESS_KEY_ID: 'key',
          SERVICE_STORAGE_S3_SECRET_ACCESS_KEY_FILE: path,
        },
      }
    },
  },
]

/** Faults that only Linux shows. */
export const LINUX_FAULTS: readonly Fault[] = [
  {
    name: 'few descriptors',
    red: { descriptors: 'failed' },
    inject: limited('ulimit -n 200'),
  },
  {
    name: 'few processes',
    red: { processes: 'warning' },
    inject: limited('ulimit -u 400'),
  },
  {
    name: 'a library whose name is that of one that ignores fsync',
    red: { 'fsync-preload': 'failed' },
    inject: ({ directory }) => {
      const maps = readFileSync('/proc/self/maps', 'utf8')
      const library = /\/\S*libm[.-]\S*/.exec(maps)?.[0] ?? /\/\S*libc[.-]\S*/.exec(maps)![0]
      const path = join(directory, 'libeatmydata.so')
      copyFileSync(library, path)
      return { settings: { LD_PRELOAD: path } }
    },
  },
]

export const MACHINE_FAULTS: readonly Fault[] = [
  {
    name: 'more application processes than processors',
    red: { processors: 'warning' },
    inject: () => ({ settings: { SERVICE_APPLICATION_PROCESSES: '64' } }),
  },
  {
    name: 'an executable that others can replace',
    red: { executable: 'failed' },
    inject: ({ directory }) => {
      const open = join(directory, 'open')
      mkdirSync(open)
      chmodSync(open, 0o777)
      const path = join(open, 'svc-server')
      try {
        linkSync(SERVER, path)
      } catch {
        copyFileSync(SERVER, path)
      }
      return { command: [path], heal: () => rmSync(open, { recursive: true }) }
    },
  },
  {
    name: 'records of the future',
    red: { 'clock-records': 'failed' },
    inject: (site) => sql(site, 'logs.db', 'update log_records set at = at + 3600 * 1000000'),
  },
]

export const ROOT_FAULTS: readonly Fault[] = [
  {
    name: 'a lock that is no file',
    red: { 'root-lock': 'failed' },
    inject: ({ root }) => {
      for (const name of ['lock.db', 'lock.db-journal']) rmSync(join(root, name), { force: true })
      mkdirSync(join(root, 'lock.db'))
    },
  },
  {
    name: 'a keyring for everybody',
    red: { 'root-permissions': 'failed' },
    inject: ({ root }) => chmodSync(join(root, 'control.db'), 0o644),
  },
  {
    name: 'artifacts for everybody',
    red: { 'root-content-permissions': 'failed' },
    inject: (site) => chmodSync(artifactOf(site), 0o666),
  },
  {
    name: 'a state directory for everybody',
    red: { 'state-directory': 'failed', 'state-permissions': 'failed' },
    inject: ({ state }) => chmodSync(state, 0o777),
  },
  {
    name: 'a damaged control database',
    red: { 'control-integrity': 'failed' },
    inject: (site) => damage(site, 'control.db'),
  },
  {
    name: 'a control database that is gone',
    red: { 'control-integrity': 'failed' },
    inject: ({ root }) => {
      for (const end of ['', '-wal', '-shm'])
        rmSync(join(root, `control.db${end}`), { force: true })
    },
  },
  {
    name: 'a control database of a newer version',
    red: { 'control-schema': 'failed' },
    inject: (site) =>
      sql(site, 'control.db', `insert into control_migrations values (99, 'x', 'y', 0, 99)`),
  },
  {
    name: 'a descriptor of another Environment',
    red: { 'control-environment': 'failed' },
    inject: ({ root }) => {
      const path = join(root, 'service.json')
      const text = readFileSync(path, 'utf8')
      writeFileSync(path, text.replace(/env_[0-9A-Z]{26}/, 'env_01ARZ3NDEKTSV4RRFFQ69G5FAV'))
    },
  },
  {
    name: 'a keyring from another backup',
    red: { keyring: 'failed', 'sealed-secrets': 'failed' },
    inject: ({ root }) => {
      const path = join(root, 'keyring.json')
      const file = JSON.parse(readFileSync(path, 'utf8'))
      file.keys[0].key = Buffer.alloc(32, 7).toString('base64url')
      writeFileSync(path, JSON.stringify(file))
    },
  },
  {
    name: 'audit records that are not delivered',
    red: { 'audit-delivery': 'warning' },
    inject: (site) =>
      sql(
        site,
        'control.db',
        `insert into audit_outbox (audit_id, record)
           values ('aud_01ARZ3NDEKTSV4RRFFQ69G5FAV', '{}')`,
      ),
  },
  {
    name: 'an altered artifact',
    red: { 'artifacts-intact': 'failed' },
    inject: (site) => {
      const path = artifactOf(site)
      const bytes = readFileSync(path)
      bytes[0] = bytes[0]! ^ 1
      writeFileSync(path, bytes)
    },
  },
  {
    name: 'an artifact that is gone',
    red: { 'artifacts-present': 'failed' },
    inject: (site) => rmSync(artifactOf(site)),
  },
  {
    name: 'an artifact of no Release',
    red: { 'artifacts-orphaned': 'warning' },
    inject: ({ root }) => store(root, 'artifacts/sha256', 'orphan', digestPath('orphan')),
  },
  {
    name: 'an altered file',
    red: { 'files-intact': 'failed', 'files-orphaned': 'warning' },
    inject: ({ root }) => store(root, 'files/sha256', 'altered'),
  },
  {
    name: 'a file that is gone',
    red: { 'files-present': 'failed' },
    inject: ({ root }) => rmSync(join(root, 'files/sha256'), { recursive: true }),
  },
  {
    name: 'bytes of no file',
    red: { 'files-orphaned': 'warning' },
    inject: ({ root }) => store(root, 'files/sha256', 'orphan', digestPath('orphan')),
  },
  {
    name: 'bytes that were set aside',
    red: { 'files-set-aside': 'warning' },
    inject: ({ root }) => store(root, 'files/damaged', 'bytes', NOBODY),
  },
  {
    name: 'an unfinished write',
    red: { 'temporary-files': 'warning' },
    inject: ({ root }) => store(root, '.', '{}', '.keyring.json.0a.tmp'),
  },
]
