/* The shapes of kernels of 3 x 3 that keep four taps, all 126 of them: bit i * 3 + j is
 * set where tap (i, j) is kept. */
#ifndef STI_KERNEL_PLANAR_SHAPES_H
#define STI_KERNEL_PLANAR_SHAPES_H

/* clang-format off */
#define STI_PLANAR_SHAPES(X) \
    X(15) X(23) X(27) X(29) X(30) X(39) X(43) X(45) X(46) X(51) X(53) X(54) X(57) \
    X(58) X(60) X(71) X(75) X(77) X(78) X(83) X(85) X(86) X(89) X(90) X(92) X(99) \
    X(101) X(102) X(105) X(106) X(108) X(113) X(114) X(116) X(120) X(135) X(139) \
    X(141) X(142) X(147) X(149) X(150) X(153) X(154) X(156) X(163) X(165) X(166) \
    X(169) X(170) X(172) X(177) X(178) X(180) X(184) X(195) X(197) X(198) X(201) \
    X(202) X(204) X(209) X(210) X(212) X(216) X(225) X(226) X(228) X(232) X(240) \
    X(263) X(267) X(269) X(270) X(275) X(277) X(278) X(281) X(282) X(284) X(291) \
    X(293) X(294) X(297) X(298) X(300) X(305) X(306) X(308) X(312) X(323) X(325) \
    X(326) X(329) X(330) X(332) X(337) X(338) X(340) X(344) X(353) X(354) X(356) \
    X(360) X(368) X(387) X(389) X(390) X(393) X(394) X(396) X(401) X(402) X(404) \
    X(408) X(417) X(418) X(420) X(424) X(432) X(449) X(450) X(452) X(456) X(464) \
    X(480)
/* clang-format on */

#endif
