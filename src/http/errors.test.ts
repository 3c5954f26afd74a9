import { expect, test } from 'vitest'
import { Fault } from '../errors/fault.ts'
import { errorResponse, MANAGEMENT_CODES } from './errors.ts'

test.each([
  [200, 'x'.repeat(200)],
  [201, `${'x'.repeat(197)}...`],
])('a rule of %i characters is shown in full, or shortened with a mark', async (length, rule) => {
  const violations = [{ path: 'checks.load', rule: 'x'.repeat(length) }]
  const fault = new Fault('PRODUCT_INCOMPATIBLE', { violations })
  const { error } = await errorResponse(fault, 'req_1', MANAGEMENT_CODES).json()
  expect(error.violations).toEqual([{ path: 'checks.load', rule }])
})
