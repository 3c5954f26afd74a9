/**
 * A machine with an installation of svc: the executables are scripts, and a script in place of
 * systemctl starts and stops the server, which is a file that says the version that runs.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sha256Hex } from '../../src/system/digests.ts'
import { MinisignKey, TARGET, writeRelease } from './signed-releases.ts'
import { type Ran, TestClient } from './test-client.ts'

export const OLD = '0.5.0'
export const NEW = '0.6.0'

/** The user of this process by name. */
const USER = spawnSync('id', ['-un'], { encoding: 'utf8' }).stdout.trim()

/** The report of `svc-server upgrade --check --json`, as far as the client reads it. */
export interface CheckReport {
  readonly exit: number
  readonly seconds?: number
  readonly backup?: string | null
}

export interface SiteOptions {
  /** False for an installation that no service starts. */
  readonly hasService?: boolean
  readonly isRunning?: boolean
}

export class UpgradeSite implements Disposable {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-upgrade-')))
  readonly bin = join(this.root, 'bin')
  readonly release = join(this.root, 'release')
  readonly key = new MinisignKey()
  readonly client = new TestClient()
  readonly pages = join(this.root, 'pages')

  constructor({ hasService = true, isRunning = true }: SiteOptions = {}) {
    for (const name of ['bin', 'state', 'tools', 'bin/.svc-install']) mkdirSync(this.#path(name))
    this.#put('bin/svc-server', this.executable(OLD), 0o755)
    linkSync(join(this.bin, 'svc-server'), join(this.bin, 'svc'))
    this.#put('key.pub', this.key.file)
    this.check(OLD, { exit: 0 })
    this.check(NEW, { exit: 0 })
    this.#receipt()
    this.#put('environment', 'SERVICE_STATE_DIRECTORY="/var/lib/svc"\n# a comment\nPLAIN=word\n')
    if (hasService) this.#put('tools/systemctl', this.#systemctl(), 0o755)
    else this.#put('tools/systemctl', '#!/bin/sh\nexit 1\n', 0o755)
    for (const name of ['dpkg', 'rpm']) this.#put(`tools/${name}`, '#!/bin/sh\nexit 1\n', 0o755)
    this.#put('tools/journalctl', `#!/bin/sh\ncat ${this.state}/log 2>/dev/null\n`, 0o755)
    if (isRunning) this.#put('state/running', `${OLD}\n`)
    this.publish()
    const { PATH = '' } = process.env
    this.client.variables.PATH = `${join(this.root, 'tools')}:${PATH}`
    this.client.program = {
      path: join(this.bin, 'svc'),
      userId: process.geteuid?.() ?? null,
    }
  }

  [Symbol.dispose](): void {
    this.client[Symbol.dispose]()
    rmSync(this.root, { recursive: true, force: true })
  }

  get state(): string {
    return join(this.root, 'state')
  }

  #path(name: string): string {
    return join(this.root, name)
  }

  #put(name: string, text: string, mode = 0o644): void {
    writeFileSync(this.#path(name), text)
    chmodSync(this.#path(name), mode)
  }

  /** The script in place of an executable. A version that is `broken` does not become ready. */
  executable(version: string): string {
    const { state } = this
    return `#!/bin/sh
case "$1" in
  version) echo "svc-server ${version}+0a1b2c3d (linux-x64)" ;;
  upgrade)
    echo "${version} $SERVICE_STATE_DIRECTORY $PLAIN" >>${state}/checks
    if [ "$3" = --json ]; then cat ${state}/json-${version}; else echo 'Report of ${version}.'; fi
    exit "$(cat ${state}/exit-${version})" ;;
  ready)
    [ "$(cat ${state}/running)" = '${version}' ] || exit 5
    [ ! -e ${state}/broken-${version} ] || exit 5 ;;
  *) exit 2 ;;
esac
`
  }

  #systemctl(): string {
    const { state, bin, root } = this
    return `#!/bin/sh
case "$1" in
  show)
    echo LoadState=loaded
    echo "ExecStart={ path=${bin}/svc-server ; argv[]=${bin}/svc-server serve ; ignore_errors=no }"
    echo User=${USER}
    echo 'EnvironmentFiles=${root}/environment (ignore_errors=no)' ;;
  is-active) if [ -e ${state}/running ]; then echo active; else echo "$(cat ${state}/idle)"; fi ;;
  reset-failed) ;;
  start | restart)
    echo "$1" >>${state}/calls
    rm -f ${state}/running
    version=$(${bin}/svc-server version | cut -d ' ' -f 2 | cut -d + -f 1)
    echo "version $version starts" >>${state}/log
    if [ -e ${state}/migrates-$version ]; then echo 1 >${state}/exit-${OLD}; fi
    if [ -e ${state}/fails-$version ]; then echo failed >${state}/idle
    else echo "$version" >${state}/running; fi ;;
  stop) echo stop >>${state}/calls; rm -f ${state}/running; echo inactive >${state}/idle ;;
esac
`
  }

  #receipt(): void {
    const pages = ['man/man1/svc.1', 'zsh/site-functions/_svc']
    const shared = pages.map((name) => {
      mkdirSync(join(this.pages, name, '..'), { recursive: true })
      writeFileSync(join(this.pages, name), `${name} of ${OLD}\n`)
      return `${sha256Hex(`${name} of ${OLD}\n`)} ${join(this.pages, name)}\n`
    })
    this.#put('bin/.svc-install/shared', shared.join(''))
    const digest = sha256Hex(readFileSync(join(this.bin, 'svc-server')))
    const receipt = [`version ${OLD}`, `target ${TARGET}`, 'artefact 00', `executable ${digest}`]
    this.#put('bin/.svc-install/receipt', `${receipt.join('\n')}\n`)
    mkdirSync(join(this.bin, '.svc-install/files'))
    this.#put('bin/.svc-install/files/LICENSE', 'old licence')
  }

  /** Sets what `upgrade --check` of a version says. */
  check(version: string, { exit, seconds = 0, backup = null }: CheckReport): void {
    this.#put(`state/json-${version}`, JSON.stringify({ version: 1, seconds, backup }))
    this.#put(`state/exit-${version}`, `${exit}\n`)
  }

  /** Lets a version behave so: `broken` and `fails` when it starts, `migrates` one way. */
  let(version: string, behaviour: 'broken' | 'fails' | 'migrates'): void {
    this.#put(`state/${behaviour}-${version}`, '')
  }

  /** Publishes a release in place of the one before. */
  publish(version: string = NEW, parts: Partial<Parameters<typeof writeRelease>[1]> = {}): void {
    rmSync(this.release, { recursive: true, force: true })
    writeRelease(this.release, {
      version,
      executable: this.executable(version),
      key: this.key,
      members: {
        LICENSE: 'new licence',
        'share/man/man1/svc.1': `man/man1/svc.1 of ${version}\n`,
        'share/man/man1/svc-upgrade.1': 'a new page\n',
        'share/zsh/site-functions/_svc': `zsh/site-functions/_svc of ${version}\n`,
      },
      ...parts,
    })
  }

  /** Runs `svc upgrade` with the release and the key of the site. */
  upgrade(...args: readonly string[]): Promise<Ran> {
    const from = args.includes('--from') ? [] : ['--from', this.release]
    const key = args.includes('--public-key-file')
      ? []
      : ['--public-key-file', this.#path('key.pub')]
    return this.client.run('upgrade', ...from, ...key, ...args)
  }

  read(name: string): string {
    return existsSync(this.#path(name)) ? readFileSync(this.#path(name), 'utf8') : ''
  }

  /** The version that both names are, that runs, and what lies beside them. */
  seen() {
    const versionOf = (name: string): string =>
      /svc-server (\d+\.\d+\.\d+)\+/.exec(this.read(`bin/${name}`))?.[1] ?? 'none'
    return {
      server: versionOf('svc-server'),
      client: versionOf('svc'),
      running: this.read('state/running').trim(),
      beside: readdirSync(this.bin)
        .filter((name) => !['svc', 'svc-server', '.svc-install'].includes(name))
        .sort(),
    }
  }
}

/** The result of `seen` before any upgrade, and after one that was rejected. */
export const UNTOUCHED = { server: OLD, client: OLD, running: OLD, beside: [] as string[] }
