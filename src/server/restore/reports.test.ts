import { expect, test } from 'vitest'
import { Secret } from '../../value/secret.ts'
import { type RestoreReport, reportJson, reportText } from './reports.ts'

const NO_PEPPERS = { identity: null, identityCheck: null, subjects: [], missingSubjects: [] }

function report(
  pepper: RestoreReport['pepper'],
  peppers: Partial<RestoreReport['peppers']> = {},
): RestoreReport {
  return {
    sequence: 7,
    atMicros: 0n,
    historyId: 'hst_00000000000000000000000002' as RestoreReport['historyId'],
    documents: 1,
    merkle: '0',
    segments: 1,
    files: 0,
    fileBytes: 0,
    missingFiles: 0,
    live: { sessions: [], invitations: [], credentials: [], storageKeys: [] },
    root: '/new',
    from: {
      environmentId: 'env_00000000000000000000000001',
      historyId: 'hst_00000000000000000000000001',
    } as RestoreReport['from'],
    isRevoked: false,
    pepper,
    peppers: { ...NO_PEPPERS, ...peppers },
  }
}

const identity = new Secret('canary-pepper')

test('a backup without peppers says so, and what is void without them', () => {
  const text = reportText(report('unknown', { missingSubjects: ['people'] }))
  expect(text).toContain('The backup has no peppers.')
  expect(text).toContain('every session and invitation is void')
  expect(text).toContain('does not have subjectPepper of people')
  expect(text).not.toContain('restored-peppers')
})

test('peppers of the backup are named by the files that have them, and never printed', () => {
  const peppers = { identity, subjects: ['people'] }
  const text = reportText(report('restored', peppers))
  expect(text).toContain(
    'SERVICE_PLATFORM_IDENTITY_PEPPER_FILE=/new/restored-peppers/identity-pepper',
  )
  expect(text).toContain(
    '/new/restored-peppers/subject-peppers.json has subjectPepper of people: copy it into the ' +
      'OIDC configuration file.',
  )
  expect(text).toContain('Delete /new/restored-peppers')
  const json = reportJson(report('restored', peppers))
  expect(JSON.parse(json)).toMatchObject({
    pepper: 'restored',
    peppers: {
      identityFile: '/new/restored-peppers/identity-pepper',
      subjectsFile: '/new/restored-peppers/subject-peppers.json',
      missingSubjects: [],
    },
  })
  expect(text + json).not.toContain('canary-pepper')
})

test('a wrong pepper in the environment is named, with the file of the right one', () => {
  const text = reportText(report('wrong', { identity }))
  expect(text).toContain('is another pepper than that of the server that made the backup')
  expect(text).toContain('Start the server with SERVICE_PLATFORM_IDENTITY_PEPPER_FILE=/new')
  expect(reportText(report('wrong'))).not.toContain('Start the server')
})
