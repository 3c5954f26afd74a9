import { describe, expect, it } from 'vitest'
import { Fault } from '../errors/fault.ts'
import { parseLine } from './arguments.ts'
import { COMMANDS } from './main.ts'

function parse(...argv: string[]) {
  return parseLine(argv, COMMANDS)
}

function refusal(...argv: string[]): string {
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

describe('the command line', () => {
  it('keeps values exactly as they were typed', () => {
    const { invocation } = parse('login', '--url', 'https://x', '--device=007', '--code-env', '1e3')
    expect(invocation.options).toMatchObject({ device: '007', 'code-env': '1e3' })
    const quoted = parse('login', '--url=https://x', '--device=-rf = a').invocation
    expect(quoted.options.device).toBe('-rf = a')
  })

  it('knows commands of two words and switches anywhere', () => {
    const line = parse('--json', 'clients', 'list', '--remote')
    expect([line.command?.name, line.json]).toEqual(['clients list', true])
    expect(line.invocation.options).toMatchObject({ remote: true })
    expect(parse('status', '--remote', '--json').json).toBe(true)
  })

  it('takes what stands behind -- as it is', () => {
    const line = parse(
      ...['call', '--remote', '--url', 'https://x', '--key-env', 'K', '--target', 't', '--'],
      ...['messages.list', '--json'],
    )
    expect(line.json).toBe(false)
    expect(line.invocation.positionals).toEqual(['messages.list', '--json'])
  })

  it.each([
    [['statsu'], 'Unknown command statsu. Did you mean status?'],
    [['relase', '--remote'], 'Unknown command relase. Did you mean release?'],
    [['zzz'], 'Unknown command zzz.'],
    [['clients'], 'clients needs one of: create, list.'],
    [['clients', 'lst'], 'Unknown command clients lst. Did you mean clients list?'],
    [['--remote', 'status'], 'Unknown option --remote before a command.'],
    [['status', '--remote', '--rot', 'x'], 'Unknown option --rot. Did you mean --root?'],
    [['status', '--remote', '-r', 'x'], 'Unknown option -r.'],
    [['status', '--remote', '--no-color'], 'Unknown option --no-color.'],
    [['status', '--remote', '--root'], '--root needs a value.'],
    [['status', '--remote', '--root='], '--root needs a value.'],
    [
      ['status', '--root', '--remote'],
      '--root needs a value; write --root=VALUE if it begins with -.',
    ],
    [['status', '--remote', '--remote'], '--remote is given twice.'],
    [['status', '--remote=yes'], '--remote takes no value.'],
    [['status'], '--remote is required: Act on the linked Environment.'],
    [['status', '--remote', 'extra'], 'Unexpected extra.'],
    [['login'], '--url ORIGIN is required: Origin of the management service.'],
  ])('refuses %j', (argv, detail) => {
    expect(refusal(...argv)).toBe(detail)
  })

  it('never repeats a credential that was typed in the wrong place', () => {
    const code = `rk_inv_v1_${'A'.repeat(43)}`
    expect(refusal('login', '--url', 'https://x', code)).not.toContain('AAAA')
    expect(refusal(code)).not.toContain('AAAA')
    expect(refusal('login', `--${code}`)).not.toContain('AAAA')
  })

  it('declares every option once, in words that fit the help', () => {
    for (const command of COMMANDS) {
      expect(command.name).toMatch(/^[a-z]+(?:-[a-z]+)?(?: [a-z]+)?$/)
      for (const [name, { description }] of Object.entries(command.options)) {
        expect(name).toMatch(/^[a-z]+(?:-[a-z]+)*$/)
        expect(description).not.toMatch(/\.$/)
      }
    }
  })
})
