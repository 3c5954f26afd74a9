import { describe, expect, it } from 'vitest'
import { Fault } from '../errors/fault.ts'
import { renderFailure } from './failures.ts'

describe('a failure of the server', () => {
  it('is one line with the code, the variable, what happened and what to do', () => {
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

  it('shows the form of a setting as it is, and redacts what was given', () => {
    const given = 'postgres://ada:secret@db/x'
    const invalid = renderFailure(new Fault('SERVER_DATABASE_URL_INVALID', { detail: given })).text
    expect(invalid).toContain('postgres://user:password@host:5432/database')
    expect(invalid).toContain('(postgres://[redacted]@db/x)')
    expect(invalid).not.toContain('secret')
  })

  it('shows the detail where no variable is at fault, still in one line', () => {
    const detail = 'PostgreSQL 15\nis too old\u001b[2J'
    const { text } = renderFailure(new Fault('SERVER_PLATFORM_DATABASE_UNAVAILABLE', { detail }))
    expect(text).toContain('(PostgreSQL 15 is too old [2J)')
    expect(text.trimEnd()).not.toContain('\n')
  })

  it('has the exit code of its kind', () => {
    expect(renderFailure(new Fault('PLATFORM_IDENTITY_RESULT_UNCERTAIN')).exit).toBe(9)
    expect(renderFailure(new Fault('PLATFORM_IDENTITY_STORAGE_CORRUPT')).exit).toBe(6)
  })

  it('without a code is internal and shows its stack, without credentials', () => {
    const error = new TypeError('cannot use rk_at_v1_abc at postgres://u:p@db/x')
    const { text, exit } = renderFailure(error)
    expect(exit).toBe(1)
    expect(text).toMatch(/^svc-server: PLATFORM_INTERNAL: The service failed unexpectedly\.\n/)
    expect(text).toContain('failures.test')
    expect(text).toContain('cannot use rk_at_v1_[redacted] at postgres://[redacted]@db/x')
    expect(renderFailure('thrown text').text).toContain('thrown text')
  })
})
