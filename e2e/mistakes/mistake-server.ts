/**
 * One server with everything that the situations need: people with different grants, codes in every
 * state, Releases, packages, directories and peers. Its values have names that situations use.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { freePort } from '../../testing/servers/ports.ts'
import { type Application, application, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'
import {
  CLIENT,
  type Environment,
  productEnvironment,
  type Result,
  run,
  SERVER,
} from '../harness.ts'
import type { Person, Situation } from './situations.ts'

export interface MistakeServer {
  readonly app: Application
  /** Texts of situations by name. */
  readonly values: Readonly<Record<string, string>>
  /** Runs the program of a situation. */
  run(situation: Situation): Promise<Result>
  /** Replaces the values in a text by their names. */
  named(text: string): string
  dispose(): Promise<void>
}

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const FOREIGN = {
  otherProject: `prj_${ID}`,
  otherEnvironment: `env_${ID}`,
  unknownRelease: `rel_${ID}`,
  unknownClient: `app_${ID}`,
  unknownOperation: `opn_${ID}`,
  unknownRevision: `wsr_${ID}`,
  wrongCode: `rk_inv_v1_${'A'.repeat(43)}`,
  wrongKey: `rk_sec_v1_${'A'.repeat(43)}`,
}
/** A Function without clients, and a second one, so that the package is a new one. */
const UNLISTED = `import { query } from 'svc'
export const one = query({ handler: () => 1n })
`

export async function openMistakeServer(): Promise<MistakeServer> {
  const app = await application()
  const { installation } = app
  const inside = (name: string): string => join(installation.directory, name)
  const homes = openHomes(installation.directory)
  const svc = (args: readonly string[], environment: Environment = {}) => app.svc(args, environment)
  const remote = argv`--root ${installation.productRoot}`
  const page = createServer((_, response) => response.end('<html>'))
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', () => resolve()))

  const observer = await svc(invitation('observer', 'environment', remote))
  const home = (person: Person) => ({ SERVICE_CONFIG_HOME: homes[person], CODE: '' })
  const login = argv`login --url ${app.server.management} --code-env CODE`
  await svc(login, { ...home('observer'), CODE: observer.code })
  const elsewhere = argv`--project-id ${FOREIGN.otherProject}`
  const stranger = await svc(invitation('operator', 'project', elsewhere))
  await svc(login, { ...home('stranger'), CODE: stranger.code })
  const expired = await svc(invitation('developer', 'installation', []))
  await expire(installation.environment.SERVICE_IDENTITY_DATABASE_URL_FILE!, expired.invitationId)

  const packages = await buildPackages(app)
  const published = await svc(argv`publish ${remote} --package ${packages.secondPackage}`)
  await svc(argv`config set GREETING hello ${remote}`)
  const reader = await svc(
    argv`credentials create ${remote} --client ${app.clientId} --name reader --scopes query`,
  )
  const { projectId, environmentId } = descriptorOf(installation.productRoot)
  const databaseUrl = readFileSync(
    installation.environment.SERVICE_IDENTITY_DATABASE_URL_FILE!,
    'utf8',
  )
  const values: Record<string, string> = {
    ...FOREIGN,
    ...packages,
    projectId,
    environmentId,
    foreignProject: descriptorOf(packages.unlinked).projectId,
    root: installation.productRoot,
    workspace: installation.workspace,
    empty: inside('empty'),
    missing: inside('missing'),
    home: homes.damaged,
    management: app.server.management,
    application: app.server.application!,
    closed: `127.0.0.1:${await freePort()}`,
    page: `http://127.0.0.1:${(page.address() as AddressInfo).port}`,
    port: new URL(app.server.management).port,
    code: observer.code,
    usedInvitation: observer.invitationId,
    expiredCode: expired.code,
    release: app.releaseId,
    published: published.releaseId,
    head: published.revisionId,
    client: app.clientId,
    key: app.key,
    reader: reader.credential.credentialId,
    readerKey: reader.key,
    ...databaseUrls(databaseUrl),
  }
  const shared = { ...productEnvironment(installation), ...installation.environment }
  return {
    app,
    values,
    run: (situation) => {
      const fill = (text: string): string => filled(text, values)
      const [program, ...args] = situation.run.map(fill)
      const given = Object.entries(situation.environment ?? {})
      const extra = Object.fromEntries(given.map(([name, text]) => [name, fill(text)]))
      const isServer = program === 'svc-server'
      const home = { SERVICE_CONFIG_HOME: homes[situation.as ?? 'owner'] }
      const base = isServer ? shared : { ...installation.clientEnvironment, ...home }
      return run([isServer ? SERVER : CLIENT, ...args], {
        environment: withoutEmpty({ ...base, ...extra }),
        directory: inside('empty'),
        input: situation.input ?? '',
      })
    },
    named: (text) => named(text, values),
    dispose: async () => {
      page.close()
      await installation.dispose()
    },
  }
}

function descriptorOf(root: string): { projectId: string; environmentId: string } {
  return JSON.parse(readFileSync(join(root, 'service.json'), 'utf8'))
}

function invitation(role: string, scope: string, more: readonly string[]): string[] {
  return argv`invite --operator-name ${role} --role ${role} --scope ${scope} ${more}`
}

/** Creates a home for each person; the owner has the home of the installation. */
function openHomes(directory: string): Readonly<Record<Person, string>> {
  const homes = {
    owner: join(directory, 'config'),
    observer: join(directory, 'observer'),
    stranger: join(directory, 'stranger'),
    nobody: join(directory, 'nobody'),
    damaged: join(directory, 'damaged'),
  }
  mkdirSync(homes.damaged, { mode: 0o700 })
  writeFileSync(join(homes.damaged, 'credentials-v1.json'), '{', { mode: 0o600 })
  mkdirSync(join(directory, 'empty'))
  return homes
}

/** Expires the invitation in the database, since a test cannot move the server's clock. */
async function expire(urlFile: string, invitationId: string): Promise<void> {
  const client = new Client({ connectionString: readFileSync(urlFile, 'utf8').trim() })
  await client.connect()
  await client.query(
    `update service_operator_invitations
        set created_at_micros = 1, expires_at_micros = 2
      where invitation_id = $1`,
    [invitationId],
  )
  await client.end()
}

async function buildPackages(app: Application) {
  const { installation } = app
  const inside = (name: string): string => join(installation.directory, name)
  const second = inside('second')
  cpSync(installation.workspace, second, { recursive: true })
  writeFileSync(join(second, 'functions/more.ts'), UNLISTED)
  const broken = inside('broken')
  cpSync(installation.workspace, broken, { recursive: true })
  writeFileSync(join(broken, 'functions/more.ts'), 'export const a = {\n  b: 1;\n}\n')
  const [secondPackage, foreignPackage] = [inside('second.svcpkg'), inside('foreign.svcpkg')]
  const foreign = inside('unlinked')
  await app.svc(argv`init --root ${foreign} --workspace ${installation.workspace}`)
  const build = (root: string, workspace: string, out: string) =>
    app.svc(argv`build --root ${root} --workspace ${workspace} --out ${out} ${UNTYPED}`)
  await build(installation.productRoot, second, secondPackage)
  await build(foreign, installation.workspace, foreignPackage)
  const damagedPackage = inside('damaged.svcpkg')
  writeFileSync(damagedPackage, readFileSync(secondPackage).subarray(0, 200))
  return { second, broken, secondPackage, foreignPackage, damagedPackage, unlinked: foreign }
}

/** URLs of the database of identity with one wrong part each. */
function databaseUrls(text: string): Record<string, string> {
  const edited = (edit: (url: URL) => void): string => {
    const url = new URL(text.trim())
    edit(url)
    return url.href
  }
  return {
    wrongPasswordUrl: edited((url) => (url.password = 'wrong')),
    noPasswordUrl: edited((url) => (url.password = '')),
    unknownDatabaseUrl: edited((url) => (url.pathname = '/unknown')),
    unknownHostUrl: edited((url) => (url.hostname = 'unknown.invalid')),
    closedDatabaseUrl: edited((url) => (url.port = '1')),
    encryptedUrl: edited((url) => (url.search = '?sslmode=verify-full')),
  }
}

function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{([a-zA-Z]+)\}/g, (whole, name: string) => values[name] ?? whole)
}

/** Replaces longer values first, since a value may be a part of another one. */
function named(text: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .toSorted(([, a], [, b]) => b.length - a.length)
    .reduce((result, [name, value]) => result.replaceAll(value, `{${name}}`), text)
    .replace(/req_[0-9A-Z]{26}/g, '{request}')
    .replace(/opn_[0-9A-Z]{26}/g, '{operation}')
}

function withoutEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, text]) => text !== ''))
}
