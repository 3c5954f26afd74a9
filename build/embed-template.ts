/**
 * Generates dist-config/environment.template, the commented environment of a server, from the rows
 * of src/settings/variables.ts, and the module with the service definitions of dist-config.
 * `--check` changes nothing and fails if one is stale.
 */
import { join } from 'node:path'
import { assert } from '../src/errors/assert.ts'
import { isRequired, VARIABLES, type Variable } from '../src/settings/variables.ts'
import { renderServiceFiles } from './docs/service-files.ts'
import { updateFiles } from './generated-files.ts'

const PATH = 'dist-config/environment.template'
const ROWS: readonly Variable[] = VARIABLES

/** Settings that only a server behind one of the proxies of dist-config needs. */
const BEHIND_PROXY = ['SERVICE_MANAGEMENT_TLS_TERMINATED']

/** One assignment per variable. Secrets are given as files; optional ones are commented out. */
export function renderTemplate(): string {
  const parts = ROWS.filter((row) => !['client only', 'recovery only'].includes(row.required)).map(
    (row) => {
      const isSet = isRequired(row) || BEHIND_PROXY.includes(row.name)
      return `# ${row.description}.\n${isSet ? '' : '# '}${assignment(row)}\n`
    },
  )
  return `${TEMPLATE_HEAD}\n${parts.join('\n')}`
}

const TEMPLATE_HEAD = `# Settings of svc-server. Generated from src/settings/variables.ts.
# They are for a server behind a proxy that terminates TLS, as nginx.conf and Caddyfile do.
# Without a proxy remove SERVICE_MANAGEMENT_TLS_TERMINATED, or name a certificate in its place.
`

/** A value that the parser accepts for each setting without a default. */
const EXAMPLES: Readonly<Record<string, string>> = {
  SERVICE_STATE_DIRECTORY: '/var/lib/svc/state',
  SERVICE_MANAGEMENT_TLS_TERMINATED: 'true',
  SERVICE_TLS_CERTIFICATE_FILE: '/etc/svc/tls/fullchain.pem',
  SERVICE_TLS_KEY_FILE: '/etc/svc/tls/privkey.pem',
  SERVICE_TLS_ACME_DOMAIN: 'api.example.com,manage.example.com',
  SERVICE_TLS_ACME_EMAIL: 'admin@example.com',
  SERVICE_TLS_ACME_CA_FILE: '/etc/svc/tls/acme-ca.pem',
  SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.example.com',
  SERVICE_PLATFORM_OIDC_CONFIG: '/etc/svc/oidc.json',
  SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG: '/etc/svc/workload-oidc.json',
  SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY: 'https://control.example.com',
  SERVICE_PRODUCT_ROOT: '/var/lib/svc/product',
  SERVICE_APPLICATION_LISTEN: '127.0.0.1:3210',
  SERVICE_APPLICATION_TLS_TERMINATED: 'true',
  SERVICE_PRODUCT_ALLOWED_ORIGINS: 'https://app.example.com',
  SERVICE_S3_HOST: 's3.example.com',
  SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json',
  SERVICE_RUNNER_SANDBOX: 'required',
  SERVICE_STORAGE_S3_ENDPOINT: 'https://s3.example.com',
  SERVICE_STORAGE_S3_BUCKET: 'svc-files',
  SERVICE_ACTION_ALLOWED_NETWORKS: '10.1.0.0/16',
  SERVICE_BACKUP_RECIPIENTS: 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj',
  SERVICE_BACKUP_DIRECTORY: '/mnt/svc-backups',
  SERVICE_BACKUP_S3_ENDPOINT: 'https://s3.example.com',
  SERVICE_BACKUP_S3_BUCKET: 'svc-backups',
  SERVICE_BACKUP_S3_PREFIX: 'production/',
  SERVICE_BACKUP_PEPPER: 'include',
  SERVICE_BACKUP_REHEARSAL_IDENTITY_FILE: '/etc/svc/rehearsal.key',
  SERVICE_MEMORY_TARGET: '512',
  SERVICE_REQUEST_MEMORY_MIB: '256',
  SERVICE_RESPONSE_MEMORY_MIB: '256',
  SERVICE_REALTIME_MEMORY_MIB: '256',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318',
}

function assignment(row: Variable): string {
  if (!row.file) {
    const value = row.default ?? EXAMPLES[row.name]
    assert(value !== undefined, `${row.name} has an example`)
    return `${row.name}=${value}`
  }
  const base = row.name
    .replace(/^SERVICE_/, '')
    .toLowerCase()
    .replaceAll('_', '-')
  return `${row.name}_FILE=/etc/svc/${base}`
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..')
  updateFiles({ [PATH]: renderTemplate(), ...renderServiceFiles(root) })
}
