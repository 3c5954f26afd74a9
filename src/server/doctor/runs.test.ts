import { expect, test } from 'vitest'
import type { DoctorReport } from '../../wire/doctor/report.ts'
import { boundedRuns } from './runs.ts'

const REPORT: DoctorReport = { version: 1, checks: [] }

test('a second run is rejected while one is under way, and accepted after it', async () => {
  const first = Promise.withResolvers<DoctorReport>()
  const results = [first.promise, Promise.resolve(REPORT)]
  const doctor = boundedRuns(() => results.shift()!)
  const running = doctor(new Headers())
  await expect(doctor(new Headers())).rejects.toMatchObject({ code: 'PRODUCT_UNAVAILABLE' })
  first.resolve(REPORT)
  expect(await running).toEqual(REPORT)
  expect(await doctor(new Headers())).toEqual(REPORT)
})

test('a run that fails makes room for the next one', async () => {
  const results = [Promise.reject(new Error('a fault')), Promise.resolve(REPORT)]
  const doctor = boundedRuns(() => results.shift()!)
  await expect(doctor(new Headers())).rejects.toThrow('a fault')
  expect(await doctor(new Headers())).toEqual(REPORT)
})
