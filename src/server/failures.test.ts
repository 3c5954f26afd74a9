import { describe, expect, it } from 'vitest'
import { Fault } from '../errors/fault.ts'
import { renderFailure } from './failures.ts'

describe('renderFailure', () => {
  it('a Fault is one line: the code, the variable, what happened and what to do', () => {
    const violations = [{ path: 'SERVICE_X', rule: 'a number' }]
    const fault = new Fault('SERVER_CONFIGURATION_INVALID', { violations, detail: 'not repeated' })
    expect(renderFailure(fault)).toEqual({
      text:
        'svc-server: SERVER_CONFIGURATION_INVALID: SERVICE_X: A setting does not have the' +
        ' required form. Expected: a number. Correct the named variable; `svc-server check`' +
        ' validates it and changes nothing.\n',
      exit: 78,
    })
  })

  it('the form of a setting is printed unchanged, and the value that was given is redacted', () => {
    const given = 'postgres://ada:secret@db/x'
    const invalid = renderFailure(new Fault('SERVER_DATABASE_URL_INVALID', { detail: given })).text
    expect(invalid).toContain('postgres://user:password@host:5432/database')
    expect(invalid).toContain('(postgres://[redacted]@db/x)')
    expect(invalid).not.toContain('secret')
  })

  it('the detail of a Fault without a variable is printed in the same line', () => {
    const detail = 'PostgreSQL 15\nis too old\u001b[2J'
    const { text } = renderFailure(new Fault('SERVER_PLATFORM_DATABASE_UNAVAILABLE', { detail }))
    expect(text).toContain('(PostgreSQL 15 is too old [2J)')
    expect(text.trimEnd()).not.toContain('\n')
  })

  it('the kind of a Fault decides the exit code', () => {
    expect(renderFailure(new Fault('PLATFORM_IDENTITY_RESULT_UNCERTAIN')).exit).toBe(9)
    expect(renderFailure(new Fault('PLATFORM_IDENTITY_STORAGE_CORRUPT')).exit).toBe(6)
  })

  it('any other error is internal and printed with its stack, without credentials', () => {
    const error = new TypeError('cannot use rk_at_v1_abc at postgres://u:p@db/x')
    const { text, exit } = renderFailure(error)
    expect(exit).toBe(1)
    expect(text).toMatch(/^svc-server: PLATFORM_INTERNAL: The service failed unexpectedly\.\n/)
    expect(text).toContain('failures.test')
    expect(text).toContain('cannot use rk_at_v1_[redacted] at postgres://[redacted]@db/x')
    expect(renderFailure('thrown text').text).toContain('thrown text')
  })
})
