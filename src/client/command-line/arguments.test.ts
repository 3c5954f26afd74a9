import { describe, expect, it } from 'vitest'
import { Fault } from '../../errors/fault.ts'
import { COMMANDS } from '../main.ts'
import { parseLine } from './arguments.ts'

function parse(...argv: string[]) {
  return parseLine(argv, COMMANDS)
}

const NEEDS_VALUE = '--root needs a value; write --root=VALUE if it begins with -.'

function rejectionOf(...argv: string[]): string {
  try {
    parse(...argv)
    return 'accepted'
  } catch (error) {
    expect(error).toBeInstanceOf(Fault)
    const fault = error as Fault
    expect(fault.exit).toBe(2)
    return fault.detail ?? ''
  }
}

/** A command line without its positional arguments. */
const CONFIG_SET = ['config', 'set', '--remote']
const CALL = ['call', '--remote', '--url', 'https://x', '--key-env', 'K', '--target', 't']

/** Texts that parsers of command lines often convert or misinterpret. */
const TEXTS = [
  '007',
  '1e3',
  '0x10',
  '-0',
  ' 5 ',
  '1_000',
  'Infinity',
  'NaN',
  'null',
  'undefined',
  'true',
  'false',
  'no',
  'a=b',
  '=',
  'a.b',
  '-',
  ' ',
  '\n',
  'a\tb',
  '"quoted"',
  "it's",
  '$HOME',
  'é',
  'e\u0301',
  '日本',
  '👩‍👩‍👧',
  '\u202e',
  '\ud800',
  '__proto__',
  'constructor',
  '{"a":[1]}',
]

describe('a value', () => {
  it.each(TEXTS)('keeps the typed text %j', (text) => {
    const inline = parse('login', '--url', 'https://x', `--device=${text}`)
    expect(inline.invocation.options).toMatchObject({ url: 'https://x', device: text })
    if (text.startsWith('-') && text !== '-') return
    const apart = parse('login', '--url', 'https://x', '--device', text, '--browser')
    expect(apart.invocation.options).toMatchObject({ device: text, browser: true })
    const positional = parse(...CONFIG_SET, 'NAME', text)
    expect(positional.invocation.positionals).toEqual(['NAME', text])
  })

  it.each(['-5', '--json', '--root', '-rf', '--', '--device=x', '-'])(
    'a value may look like an option after an equals sign: %s',
    (text) => {
      const line = parse('login', '--url=https://x', `--device=${text}`)
      expect(line.invocation.options).toMatchObject({ device: text })
      expect(line.json).toBe(false)
    },
  )

  it.each(TEXTS)('after an option without value belongs to the command: %j', (text) => {
    if (text.startsWith('-') && text !== '-') return
    const { options, positionals } = parse('config', 'set', 'N', '--remote', text).invocation
    expect([options.remote, positionals]).toEqual([true, ['N', text]])
    const before = parse('config', 'set', '--secret', text, '--json', 'V', '--remote')
    expect(before.invocation.positionals).toEqual([text, 'V'])
  })

  it('a positional argument may be empty', () => {
    expect(parse(...CONFIG_SET, 'NAME', '').invocation.positionals).toEqual(['NAME', ''])
    expect(parse(...CONFIG_SET, '', 'x').invocation.positionals).toEqual(['', 'x'])
  })

  it('an option that is not given is undefined, and false if it takes no value', () => {
    const { options } = parse(...CONFIG_SET, 'NAME').invocation
    expect([options.root, options.secret, options.remote]).toEqual([undefined, false, true])
  })
})

describe('the command line', () => {
  it('accepts commands of two words, and options in any position', () => {
    const line = parse('--json', 'clients', 'list', '--remote')
    expect([line.command?.name, line.json]).toEqual(['clients list', true])
    expect(line.invocation.options).toMatchObject({ remote: true })
    expect(parse('status', '--remote', '--json').json).toBe(true)
  })

  it('accepts an option whose name begins with no-', () => {
    const options = (...more: string[]) => parse('login', '--url', 'x', ...more).invocation.options
    expect(options('--browser')['no-open']).toBe(false)
    expect(options('--browser', '--no-open')).toMatchObject({ browser: true, 'no-open': true })
  })

  it('distinguishes an option from another one that negates its name', () => {
    const options = (...more: string[]) =>
      parse('environments', 'update', '--remote', ...more).invocation.options
    const both = { location: 'Rome', 'no-location': true }
    expect(options('--location', 'Rome', '--no-location')).toMatchObject(both)
    expect(options('--no-location', '--location=Rome')).toMatchObject(both)
    expect(options('--location', 'Rome')['no-location']).toBe(false)
    expect(options('--no-location').location).toBe(undefined)
  })

  it('takes every word after -- literally', () => {
    const words = ['messages.list', '--json']
    const line = parse(...CALL, '--', ...words)
    expect([line.json, line.invocation.positionals]).toEqual([false, words])
    const number = parse(...CONFIG_SET, 'NAME', '--', '-5')
    expect(number.invocation.positionals).toEqual(['NAME', '-5'])
    expect(parse(...CALL, '--', '--help').help).toBe(false)
    expect(parse(...CONFIG_SET, '--', '--', '').invocation.positionals).toEqual(['--', ''])
    expect(parse('status', '--remote', '--').invocation.positionals).toEqual([])
  })

  it('shows help if the line has a help option, even if the rest is invalid', () => {
    for (const line of [
      ['--help', 'status'],
      ['status', '-h'],
      ['status', '--rot', '--help'],
    ]) {
      expect(parse(...line)).toMatchObject({ help: true, command: { name: 'status' } })
    }
    expect(parse('-h')).toMatchObject({ help: true, command: null })
  })

  it.each([
    [['statsu'], 'Unknown command statsu. Did you mean status?'],
    [['relase', '--remote'], 'Unknown command relase. Did you mean release?'],
    [['clints'], 'Unknown command clints. Did you mean clients?'],
    [['client', 'list', '--root', 'x'], 'Unknown command client. Did you mean clients list?'],
    [['relase', 'x'], 'Unknown command relase. Did you mean release?'],
    [['zzz'], 'Unknown command zzz.'],
    [['007'], 'Unknown command 007.'],
    [[''], 'Unknown command (empty).'],
    [['clients'], 'clients needs one of: create, list.'],
    [['clients', 'lst'], 'Unknown command clients lst. Did you mean clients list?'],
    [['sessions', 'x'], 'Unknown command sessions x. Did you mean sessions list?'],
    [['--remote', 'status'], 'Unknown option --remote before a command.'],
    [['--', 'status'], 'Unknown option -- before a command.'],
    [['status', '--remote', '--rot', 'x'], 'Unknown option --rot. Did you mean --root?'],
    [['status', '--remote', '-r', 'x'], 'Unknown option -r.'],
    [['status', '--remote', '-5'], 'Unknown option -5.'],
    [['status', '--remote', '-rh'], 'Unknown option -rh.'],
    [['status', '--remote', '-root', 'x'], 'Unknown option -root. Did you mean --root?'],
    [['status', '--remote', '---root', 'x'], 'Unknown option ---root. Did you mean --root?'],
    [['status', '--remote', '--root.x', 'y'], 'Unknown option --root.x. Did you mean --root?'],
    [['status', '--remote', '--=x'], 'Unknown option --.'],
    [['status', '--remote', '--__proto__=x'], 'Unknown option --__proto__.'],
    [['status', '--remote', '--constructor'], 'Unknown option --constructor.'],
    [['status', '--remote', '--no-color'], 'Unknown option --no-color.'],
    [['status', '--remote', '--no-json'], 'Unknown option --no-json.'],
    [['login', '--url', 'x', '--no_open'], 'Unknown option --no_open. Did you mean --no-open?'],
    [['status', '--no-remote'], 'Unknown option --no-remote.'],
    [['login', '--url', 'x', '--open'], 'Unknown option --open. Did you mean --no-open?'],
    [
      ['login', '--url', 'x', '--codeEnv', 'C'],
      'Unknown option --codeEnv. Did you mean --code-env?',
    ],
    [['status', '--remote', '--root'], NEEDS_VALUE],
    [['status', '--root', '--remote'], NEEDS_VALUE],
    [['status', '--remote', '--root', '-5'], NEEDS_VALUE],
    [['status', '--remote', '--root', '--'], NEEDS_VALUE],
    [['status', '--remote', '--root='], '--root needs a value.'],
    [['status', '--root=', 'x', '--remote'], '--root needs a value.'],
    [['status', '--remote', '--root', ''], '--root needs a value.'],
    [['status', '--remote', '--remote'], '--remote is given twice.'],
    [['status', '--remote', '--json', '--json'], '--json is given twice.'],
    [['status', '--remote', '--root', 'a', '--root', 'b'], '--root is given twice.'],
    [['status', '--remote', '--root=a', '--root=a'], '--root is given twice.'],
    [['login', '--url', 'x', '--no-open', '--no-open'], '--no-open is given twice.'],
    [['status', '--remote=yes'], '--remote takes no value.'],
    [['status', '--remote=true'], '--remote takes no value.'],
    [['status', '--remote='], '--remote takes no value.'],
    [['login', '--url', 'x', '--no-open=1'], '--no-open takes no value.'],
    [['login'], '--url <ORIGIN> is required: Origin of the management service.'],
    [
      ['init'],
      '--root <DIR> is required: The new root, which a server serves. ' +
        '--workspace <DIR> is required: The Workspace, which has the source of the Functions.',
    ],
    [['status', '--remote', 'extra'], 'Unexpected extra.'],
    [['status', '--remote', '--', '--extra'], 'Unexpected --extra.'],
    [CALL, 'FUNCTION is required.'],
    [[...CALL, 'f', '{}', ''], 'Unexpected (empty).'],
  ])('rejects %j', (argv, detail) => {
    expect(rejectionOf(...argv)).toBe(detail)
  })

  it('collects the values of an option that may be given more than once', () => {
    const headers = (...words: string[]) => {
      const { options } = parse('dev', 'hook', 'stripe', ...words).invocation
      return options.header
    }
    expect(headers()).toEqual([])
    expect(headers('--header', 'a:-1')).toEqual(['a:-1'])
    expect(headers('--header', '007', '--header=--json')).toEqual(['007', '--json'])
  })

  it('never repeats a credential that was typed in the wrong place', () => {
    const code = `rk_inv_v1_${'A'.repeat(43)}`
    expect(rejectionOf('login', '--url', 'https://x', code)).not.toContain('AAAA')
    expect(rejectionOf(code)).not.toContain('AAAA')
    expect(rejectionOf('login', `--${code}`)).not.toContain('AAAA')
  })

  it('every command has valid option names, and descriptions without a final period', () => {
    for (const command of COMMANDS) {
      expect(command.name).toMatch(/^[a-z]+(?:-[a-z]+)?(?: [a-z]+(?:-[a-z]+)?){0,2}$/)
      for (const [name, { description }] of Object.entries(command.options)) {
        expect(name).toMatch(/^[a-z]+(?:-[a-z]+)*$/)
        expect(description).not.toMatch(/\.$/)
      }
    }
  })
})
