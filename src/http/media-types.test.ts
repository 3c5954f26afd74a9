import { expect, test } from 'vitest'
import { preferredType } from './media-types.ts'

const JSON_TYPE = 'application/json'
const METRICS = 'application/openmetrics-text'
const TEXT = 'text/plain'

/** The Accept header of Prometheus 3. */
const SCRAPE =
  'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,' +
  'application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,' +
  'text/plain;version=0.0.4;q=0.3,*/*;q=0.2'

test.each<[string | null, string | null]>([
  [null, JSON_TYPE],
  ['*/*', JSON_TYPE],
  ['application/*', JSON_TYPE],
  [JSON_TYPE, JSON_TYPE],
  ['application/json; charset=utf-8', JSON_TYPE],
  ['APPLICATION/JSON', JSON_TYPE],
  [TEXT, TEXT],
  ['text/*', TEXT],
  ['text/html, text/plain;q=0.9', TEXT],
  [METRICS, METRICS],
  ['application/openmetrics-text; version=1.0.0; charset=utf-8', METRICS],
  [SCRAPE, METRICS],
  // Prometheus 2 where OpenMetrics is not negotiated.
  ['text/plain;version=0.0.4;q=1,*/*;q=0.1', TEXT],
  ['application/openmetrics-text;q=0.3, text/plain;version=0.0.4;q=0.5', TEXT],
  ['text/plain;version=1.0.0', TEXT],
  // Among equals, the first offered type wins. Many HTTP libraries send this header.
  ['application/json, text/plain, */*', JSON_TYPE],
  ['application/json;q=0.1, */*;q=0.5', METRICS],
  ['application/json;q=0, */*', METRICS],
  ['text/html', null],
  ['application/json;q=0', null],
  ['application/json;q=x', null],
  ['', null],
])('Accept %j prefers %s', (accept, best) => {
  expect(preferredType(accept, [JSON_TYPE, METRICS, TEXT])).toBe(best)
})
