/**
 * The configuration table of README.md and the commented environment template, both from the rows
 * of src/settings/variables.ts. `--check` changes nothing and fails where one is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../src/errors/assert.ts'
import { isRequired, VARIABLES, type Variable } from '../src/settings/variables.ts'

const BEGIN = '<!-- configuration: generated from src/settings/variables.ts -->'
const END = '<!-- /configuration -->'
const ROWS: readonly Variable[] = VARIABLES

export function renderTable(): string {
  const lines = ROWS.map((row) => {
    const name = row.file ? `\`${row.name}\`, or \`..._FILE\`` : `\`${row.name}\``
    const initial = row.default === undefined ? '' : `; default \`${row.default}\``
    return `| ${name} | ${row.required}${initial} | ${row.description} |`
  })
  return ['| Variable | Required | What it is |', '|---|---|---|', ...lines].join('\n')
}

function renderReadme(text: string): string {
  const begin = text.indexOf(BEGIN)
  const end = text.indexOf(END)
  assert(begin !== -1 && end > begin, 'README.md has lost the marks around its table')
  return `${text.slice(0, begin + BEGIN.length)}\n${renderTable()}\n${text.slice(end)}`
}

/** The template is for a server behind one of the proxies of dist-config. */
const BEHIND_PROXY = ['SERVICE_MANAGEMENT_TLS_TERMINATED']

/** One assignment a variable; secrets are given as files, what is optional is commented out. */
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
# They are for a server behind a proxy that ends TLS, such as nginx.conf or Caddyfile sets up.
# Without a proxy remove SERVICE_MANAGEMENT_TLS_TERMINATED.
`

/** A value that the parser accepts for each setting without a default. */
const EXAMPLES: Readonly<Record<string, string>> = {
  SERVICE_STATE_DIRECTORY: '/var/lib/svc/state',
  SERVICE_MANAGEMENT_TLS_TERMINATED: 'true',
  SERVICE_PUBLIC_MANAGEMENT_URL: 'https://manage.example.com',
  SERVICE_PLATFORM_OIDC_CONFIG: '/etc/svc/oidc.json',
  SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG: '/etc/svc/workload-oidc.json',
  SERVICE_PLATFORM_MANAGED_SOURCE_AUTHORITY: 'https://control.example.com',
  SERVICE_PRODUCT_ROOT: '/var/lib/svc/product',
  SERVICE_APPLICATION_LISTEN: '127.0.0.1:3210',
  SERVICE_APPLICATION_TLS_TERMINATED: 'true',
  SERVICE_PRODUCT_ALLOWED_ORIGINS: 'https://app.example.com',
  SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json',
  SERVICE_RUNNER_SANDBOX: 'required',
  SERVICE_ACTION_ALLOWED_NETWORKS: '10.1.0.0/16',
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
  const check = process.argv.includes('--check')
  const renderers: Readonly<Record<string, (text: string) => string>> = {
    'README.md': renderReadme,
    'dist-config/environment.template': renderTemplate,
  }
  for (const [path, render] of Object.entries(renderers)) {
    const text = readFileSync(join(root, path), { encoding: 'utf8', flag: 'a+' })
    const wanted = render(text)
    if (wanted === text) continue
    if (check) process.exitCode = 1
    else writeFileSync(join(root, path), wanted)
    process.stdout.write(`${path}${check ? ' is stale: run npm run generate' : ''}\n`)
  }
}
