/** Managers other than systemd, which the tests of the command run with. Each is a script here. */
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { programRunner } from '../programs.ts'
import { findLaunchdService } from './launchd.ts'
import { findOpenRcService } from './open-rc.ts'
import type { Service, ServiceSearch } from './service.ts'
import { findService } from './services.ts'
import { findSystemdService } from './systemd.ts'

let work: string
let search: ServiceSearch
beforeEach(() => {
  work = realpathSync(mkdtempSync(join(tmpdir(), 'svc-service-')))
  put('svc-server', '#!/bin/sh\n')
  put('other', '#!/bin/sh\n')
  const PATH = `${work}:${process.env.PATH}`
  const run = programRunner({ variable: (name) => (name === 'PATH' ? PATH : undefined) })
  search = { run, executable: path('svc-server'), userId: 4_242 }
})
afterEach(() => rmSync(work, { recursive: true, force: true }))

const path = (name: string): string => join(work, name)

function put(name: string, text: string): void {
  writeFileSync(path(name), text)
  chmodSync(path(name), 0o755)
}

/** A script that records its arguments, and has an answer for some of them. */
function answering(name: string, answers: Readonly<Record<string, string>>): void {
  const cases = Object.entries(answers).map(([words, command]) => `'${words}') ${command} ;;`)
  const record = `echo "$*" >>${work}/calls`
  put(name, `#!/bin/sh\n${record}\ncase "$*" in\n${cases.join('\n')}\n*) exit 0 ;;\nesac\n`)
}

function calls(): string[] {
  const text = existsSync(path('calls')) ? readFileSync(path('calls'), 'utf8') : ''
  return text.trim().split('\n')
}

function settings(service: Service): Record<string, string> {
  const entries = Object.entries(service.variables)
  return Object.fromEntries(entries.map(([name, secret]) => [name, secret.reveal()]))
}

describe('a service of OpenRC', () => {
  const files = () => ({ script: path('script'), settings: [path('one'), path('two')] })

  test('the service is started with its settings, as its user', async () => {
    put(
      'script',
      `command="${work}/svc-server"\ncommand_user='daemon:daemon'\nerror_log=${work}/log\n`,
    )
    put('one', 'A=one\nB=one\n')
    put('two', 'export B="two"\nrc_ulimit="-n 65536"\n')
    put('log', `${'x\n'.repeat(9)}the reason\n`)
    answering('rc-service', { 'svc-server status': 'exit 32' })
    const service = (await findOpenRcService(search, files()))!
    expect([service.manager, service.user]).toEqual(['OpenRC', { uid: 1, gid: 1 }])
    expect(settings(service)).toEqual({ A: 'one', B: 'two', rc_ulimit: '-n 65536' })
    expect([await service.isRunning(), await service.hasFailed()]).toEqual([false, true])
    expect(await service.log()).toBe('x\nx\nx\nx\nthe reason')
    await service.start()
    await service.restart()
    await service.stop()
    expect(calls().slice(-3)).toEqual(
      ['start', 'restart', 'stop'].map((each) => `svc-server ${each}`),
    )
  })

  test.each([
    ['starts another executable', 'command=/usr/bin/other\n'],
    ['computes its command', 'command="$prefix/svc-server"\n'],
    ['has no command', 'start() { :; }\n'],
  ])('the service is left alone if its script %s', async (_, text) => {
    put('script', text)
    expect(await findOpenRcService(search, files())).toBeNull()
    expect(await findOpenRcService(search, { ...files(), script: path('none') })).toBeNull()
  })

  test('a manager that fails is reported with its reason', async () => {
    put('script', `command=${work}/svc-server\ncommand_user=daemon\n`)
    answering('rc-service', { 'svc-server restart': 'echo "no such service" >&2; exit 1' })
    const service = (await findOpenRcService(search, files()))!
    await expect(service.restart()).rejects.toMatchObject({
      code: 'CLIENT_UPGRADE_NOT_READY',
      detail: '`rc-service svc-server restart`: no such service.',
    })
  })
})

describe('a daemon of launchd', () => {
  const daemon = (more: object = {}) =>
    answering('plutil', {
      [`-convert json -o - ${path('plist')}`]: `echo '${JSON.stringify({
        ProgramArguments: [path('svc-server'), 'serve'],
        UserName: 'daemon',
        EnvironmentVariables: { A: 'one' },
        StandardErrorPath: path('log'),
        ...more,
      })}'`,
    })

  test('the service is started with its settings, as its user', async () => {
    daemon()
    put('log', 'the reason\n')
    answering('launchctl', { 'print system/svc-server': 'echo "  state = running"' })
    const service = (await findLaunchdService(search, path('plist')))!
    expect([service.manager, service.user]).toEqual(['launchd', { uid: 1, gid: 1 }])
    expect(settings(service)).toEqual({ A: 'one' })
    expect([await service.isRunning(), await service.log()]).toEqual([true, 'the reason'])
    await service.restart()
    await service.stop()
    expect(calls().slice(-2)).toEqual([
      'kickstart -k system/svc-server',
      'bootout system/svc-server',
    ])
    await service.start()
    expect(calls().at(-1)).toBe('kickstart system/svc-server')
    answering('launchctl', { 'print system/svc-server': 'exit 113' })
    await service.start()
    expect(calls().at(-1)).toBe(`bootstrap system ${path('plist')}`)
  })

  test('the settings of a daemon that a shell starts are those of its file', async () => {
    put('environment', "A='of the file'\n")
    const script = `set -a; . ${path('environment')}; exec "$0" "$@"`
    const words = ['/bin/sh', '-c', script, path('svc-server'), 'serve']
    daemon({ ProgramArguments: words, EnvironmentVariables: { A: 'one', B: 'two' } })
    const service = (await findLaunchdService(search, path('plist')))!
    expect(settings(service)).toEqual({ A: 'of the file', B: 'two' })
    daemon({ ProgramArguments: words.toSpliced(3, 1, path('other')) })
    expect(await findLaunchdService(search, path('plist'))).toBeNull()
    daemon({ ProgramArguments: words.toSpliced(2, 1, 'exec "$0" "$@"') })
    expect(await findLaunchdService(search, path('plist'))).toBeNull()
  })

  test('another executable, and none, are left alone', async () => {
    daemon({ ProgramArguments: [path('other')] })
    expect(await findLaunchdService(search, path('plist'))).toBeNull()
    daemon({ ProgramArguments: 'svc-server' })
    expect(await findLaunchdService(search, path('plist'))).toBeNull()
    answering('plutil', { [`-convert json -o - ${path('plist')}`]: 'exit 1' })
    expect(await findLaunchdService(search, path('plist'))).toBeNull()
  })
})

describe('a unit of systemd', () => {
  const unit = (more: readonly string[]) => {
    put('shown', `${['LoadState=loaded', 'User=daemon', ...more].join('\n')}\n`)
    put('systemctl', `#!/bin/sh\n[ "$1" = show ] && cat ${work}/shown\n`)
  }
  const starts = (name: string) => `ExecStart={ path=${path(name)} ; argv[]=x serve ; }`

  test('a unit has the settings of its variables and files, of which a file decides', async () => {
    put('environment', 'B="of the file"\n')
    unit([
      starts('svc-server'),
      'Environment=A=one "B=of the unit"',
      `EnvironmentFiles=${path('none')} (ignore_errors=yes)`,
      `EnvironmentFiles=${path('environment')} (ignore_errors=no)`,
    ])
    const service = (await findSystemdService(search))!
    expect(service.user).toEqual({ uid: 1, gid: 1 })
    expect(settings(service)).toEqual({ A: 'one', B: 'of the file' })
  })

  test('a unit of another executable is left alone', async () => {
    unit([starts('other')])
    expect(await findSystemdService(search)).toBeNull()
    expect(await findService(search, 'darwin')).toBeNull()
  })

  test('a file of settings that cannot be read is named', async () => {
    unit([starts('svc-server'), `EnvironmentFiles=${path('none/x')} (ignore_errors=no)`])
    await expect(findSystemdService(search)).rejects.toMatchObject({
      code: 'CLIENT_FILE_FAILED',
      detail: expect.stringContaining('none'),
    })
  })

  test('a user that does not exist is named', async () => {
    unit([starts('svc-server'), 'User=daemon'])
    put('id', '#!/bin/sh\nexit 1\n')
    await expect(findSystemdService(search)).rejects.toMatchObject({
      code: 'CLIENT_UPGRADE_IMPOSSIBLE',
      detail: 'The user daemon of the service does not exist. Nothing was replaced.',
    })
  })
})
