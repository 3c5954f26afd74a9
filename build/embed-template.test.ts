import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseSettings } from '../src/settings/settings.ts'
import { VARIABLES } from '../src/settings/variables.ts'
import { selfSigned } from '../testing/certificates.ts'
import { PEPPER, TOKEN, URL_OK } from '../testing/environments/environments.ts'
import { OIDC_FILE, WORKLOADS } from '../testing/environments/oidc-files.ts'

const TEMPLATE = join(import.meta.dirname, '../dist-config/environment.template')
const PROVIDER = {
  name: 'users',
  kind: 'user',
  issuer: 'https://idp.example.com',
  audience: 'app',
  algorithms: ['ES256'],
  jwksUri: 'https://idp.example.com/jwks.json',
}
const TLS = selfSigned('manage.example.com')
/** The files that the template names. */
const FILES: Readonly<Record<string, string>> = {
  '/etc/svc/identity-database-url': URL_OK,
  '/etc/svc/platform-identity-pepper': PEPPER,
  '/etc/svc/platform-managed-enrollment-token': TOKEN,
  '/etc/svc/platform-database-url': URL_OK,
  '/etc/svc/oidc.json': OIDC_FILE,
  '/etc/svc/backup-s3-access-key-id': 'id',
  '/etc/svc/backup-s3-secret-access-key': 'secret',
  '/etc/svc/storage-s3-access-key-id': 'id',
  '/etc/svc/storage-s3-secret-access-key': 'secret',
  '/etc/svc/otel-exporter-otlp-headers': 'api-key=secret',
  '/etc/svc/workload-oidc.json': JSON.stringify(WORKLOADS),
  '/etc/svc/tls/fullchain.pem': TLS.certificate,
  '/etc/svc/tls/privkey.pem': TLS.key,
  '/etc/svc/tls/acme-ca.pem': TLS.certificate,
  '/var/lib/svc/product/auth.json': JSON.stringify({ version: 1, providers: [PROVIDER] }),
}

let root: string

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-template-'))
  for (const directory of ['/etc/svc/tls', '/var/lib/svc/product']) {
    mkdirSync(join(root, directory), { recursive: true })
  }
  for (const [path, content] of Object.entries(FILES)) {
    writeFileSync(join(root, path), content, { mode: 0o600 })
  }
})

afterAll(() => rmSync(root, { recursive: true }))

/** Returns the assignments in the text, with paths below the temporary root. */
function assignments(text: string): Record<string, string> {
  const found = [...text.matchAll(/^([A-Z0-9_]+)=(.*)$/gm)]
  return Object.fromEntries(
    found.map(([, name, value]) => [name, value!.replace(/^\/(?:etc|var)\//, `${root}$&`)]),
  )
}

test('the parser of settings accepts the environment template unchanged', () => {
  const environment = assignments(readFileSync(TEMPLATE, 'utf8'))
  for (const mode of ['check', 'migrate', 'serve'] as const) {
    expect(parseSettings(environment, mode).stateDirectory).toBe(`${root}/var/lib/svc/state`)
  }
})

test('the parser of settings accepts every example of the environment template', () => {
  const text = readFileSync(TEMPLATE, 'utf8').replace(/^# (?=[A-Z0-9_]+=)/gm, '')
  const environment = assignments(text)
  const withoutFile = (name: string) => name.replace(/_FILE$/, '')
  const named = Object.keys(environment).map(withoutFile)
  const settings = VARIABLES.filter(({ required }) => !/only$/.test(required))
  expect(named).toEqual(settings.map(({ name }) => withoutFile(name)))
  // Backups have one target, a directory or a bucket, and the certificate is in files or ordered.
  const { SERVICE_BACKUP_DIRECTORY } = environment
  const without = (names: RegExp) =>
    Object.fromEntries(Object.entries(environment).filter(([name]) => !names.test(name)))
  const ordered = parseSettings(without(/BACKUP_S3|TLS_CERTIFICATE|TLS_KEY/), 'serve')
  expect(ordered.product!.backups?.target).toEqual({
    kind: 'directory',
    path: SERVICE_BACKUP_DIRECTORY,
  })
  expect(ordered.tls?.acme?.domains).toEqual(['api.example.com', 'manage.example.com'])
  expect(ordered.tls?.acme?.authority).toBe(TLS.certificate)
  const inBucket = without(/BACKUP_DIRECTORY|TLS_ACME/)
  const { product, management, managedSource, oidc, workloads, tls } = parseSettings(
    inBucket,
    'serve',
  )
  expect([tls?.acme, tls?.pair?.hosts]).toEqual([null, ['manage.example.com']])
  expect(product?.backups?.target).toMatchObject({ kind: 's3', prefix: 'production/' })
  expect(product?.storage.s3).toMatchObject({ bucket: 'svc-files', region: 'us-east-1' })
  expect(product?.actionNetworks.map((network) => network.text)).toEqual(['10.1.0.0/16'])
  expect(product?.jwtProviders).toHaveLength(1)
  expect([managedSource === null, oidc === null]).toEqual([false, false])
  expect(workloads).toHaveLength(2)
  expect(management.publicUrl).toBe('https://manage.example.com')
})
