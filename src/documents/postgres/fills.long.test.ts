import { fillSuite } from './fills-suite.ts'

fillSuite(1_000_000, 600_000)
