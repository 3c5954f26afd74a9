import { fillSuite } from './fills-suite.ts'

fillSuite(20_000, 120_000)
